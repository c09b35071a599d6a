"""One file a language. A language is a module with a class ``Loaded(kernel, evaluator)``, made inside the candidate's
child, whose ``build(calling, state)`` returns a function from named inputs to the kernel's result. Files whose names
begin with an underscore are shared parts."""
