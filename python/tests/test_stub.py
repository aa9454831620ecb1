"""The stub says what the module has: the same names, with the same parameters."""

import ast
import inspect
import pathlib

import eventring

STUB = ast.parse((pathlib.Path(eventring.__file__).parent / "__init__.pyi").read_text())


def parameters_of_stub(function):
    """Returns the parameters that a function of the stub declares, without `self`: name, kind and default."""
    args = function.args
    positional = args.posonlyargs + args.args
    defaults = [None] * (len(positional) - len(args.defaults)) + args.defaults
    found = [(arg.arg, "positional", default) for arg, default in zip(positional, defaults) if arg.arg != "self"]
    found += [(args.vararg.arg, "variable", None)] if args.vararg else []
    found += [(arg.arg, "named", default) for arg, default in zip(args.kwonlyargs, args.kw_defaults)]
    return [(name, kind, default and ast.literal_eval(default), default is not None) for name, kind, default in found]


def parameters_of_module(function):
    kinds = {
        inspect.Parameter.POSITIONAL_ONLY: "positional",
        inspect.Parameter.POSITIONAL_OR_KEYWORD: "positional",
        inspect.Parameter.VAR_POSITIONAL: "variable",
        inspect.Parameter.KEYWORD_ONLY: "named",
    }
    parameters = [it for it in inspect.signature(function).parameters.values() if it.name != "self"]
    defaults = [None if it.default is it.empty else it.default for it in parameters]
    has_default = [it.default is not it.empty for it in parameters]
    return [(it.name, kinds[it.kind], *rest) for it, *rest in zip(parameters, defaults, has_default)]


def is_property(function):
    return any(isinstance(it, ast.Name) and it.id == "property" for it in function.decorator_list)


def test_each_function_has_the_parameters_of_the_stub():
    functions = [node for node in STUB.body if isinstance(node, ast.FunctionDef)]
    assert {function.name for function in functions} == {"open", "read"}
    for function in functions:
        assert parameters_of_stub(function) == parameters_of_module(getattr(eventring, function.name)), function.name


def test_each_class_has_the_members_of_the_stub():
    classes = [node for node in STUB.body if isinstance(node, ast.ClassDef) and node.bases == []]
    for declared in classes:
        real = getattr(eventring, declared.name)
        members = {node.name: node for node in declared.body if isinstance(node, ast.FunctionDef)}
        public = {name for name in vars(real) if not name.startswith("_")}
        assert public == {name for name in members if not name.startswith("_")}, declared.name
        for name, member in members.items():
            assert name in vars(real), (declared.name, name)
            is_data = inspect.isgetsetdescriptor(vars(real)[name])
            assert is_property(member) == is_data, (declared.name, name)
            if not name.startswith("__") and not is_data:
                assert parameters_of_stub(member) == parameters_of_module(getattr(real, name)), (declared.name, name)
        special = {"__iter__", "__next__", "__len__", "__getitem__", "__contains__", "__enter__", "__exit__"}
        special |= {"__arrow_c_stream__", "__arrow_c_schema__"}
        assert special & set(vars(real)) == special & set(members), declared.name


def test_the_module_exports_what_the_stub_declares():
    names = {node.name for node in STUB.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    names |= {node.target.id for node in STUB.body if isinstance(node, ast.AnnAssign)}
    assert names == set(eventring.__all__)
    assert all(getattr(eventring, name).__doc__ for name in eventring.__all__)
