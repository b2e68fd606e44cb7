defmodule Ferrox.Ops.EinsumTest do
  # What einsum refuses; its values are compared with NumPy's in test/ferrox/numpy_test.exs.
  use ExUnit.Case, async: true

  test "an ellipsis of no axes is nothing" do
    t = Ferrox.iota({2, 3})
    assert Ferrox.einsum("...ij->ji", [t]) == Ferrox.transpose(t)
    assert Ferrox.einsum("ij->...ij", [t]) == t
    assert Ferrox.einsum("...,...", [2, 3]) == Ferrox.tensor(6)
  end

  test "what can't be is refused" do
    t = Ferrox.iota({2, 3})
    bool = Ferrox.tensor([true], type: :bool)

    for {message, fun} <- [
          {"expects an equation and a list of tensors", fn -> Ferrox.einsum("ij", t) end},
          {"expects an equation and a list of tensors", fn -> Ferrox.einsum(:ij, [t]) end},
          {"expected an equation such as", fn -> Ferrox.einsum("..j", [t]) end},
          {"expected an equation such as", fn -> Ferrox.einsum("...j...", [t]) end},
          {"expected an equation such as", fn -> Ferrox.einsum("i1", [t]) end},
          {"\"...ijk\" does not name the axes of shape {2, 3}",
           fn -> Ferrox.einsum("...ijk", [t]) end},
          {"\"i\" does not name the axes of shape {2, 3}", fn -> Ferrox.einsum("i", [t]) end},
          {"must have the axes of \"...\", too", fn -> Ferrox.einsum("...j->j", [t]) end},
          {"axis -1 of \"...\" of \"i...,...i\" has different sizes: 3, 2",
           fn -> Ferrox.einsum("i...,...i", [t, Ferrox.iota({2, 2})]) end},
          {"expected an equation such as", fn -> Ferrox.einsum("i->j->k", [t]) end},
          {"has 2 operands, got: 1", fn -> Ferrox.einsum("ij,jk", [t]) end},
          {"must be there once, and in an operand", fn -> Ferrox.einsum("ij->ik", [t]) end},
          {"must be there once, and in an operand", fn -> Ferrox.einsum("ij->ii", [t]) end},
          {"\"ijk\" does not name the axes of shape {2, 3}", fn -> Ferrox.einsum("ijk", [t]) end},
          {"axis i of \"ii\" has different sizes: 2, 3", fn -> Ferrox.einsum("ii", [t]) end},
          {"einsum is not defined for bool",
           fn -> Ferrox.einsum("i", [bool], promotion: :numpy) end}
        ] do
      error = assert_raise(ArgumentError, fun)
      assert Exception.message(error) =~ message
    end
  end
end
