"""One file a package: cases that call its public functions on small inputs. A case is a function ``case_NAME(c)``; what is
compared is said in plain torch, or with the package's own torch reference where it ships one."""
