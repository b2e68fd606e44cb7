defmodule Ferrox.Ops.EinsumTest do
  # What einsum refuses; its values are compared with NumPy's in test/ferrox/numpy_test.exs.
  use ExUnit.Case, async: true

  test "what can't be is refused" do
    t = Ferrox.iota({2, 3})
    bool = Ferrox.tensor([true], type: :bool)

    for {message, fun} <- [
          {"expects an equation and a list of tensors", fn -> Ferrox.einsum("ij", t) end},
          {"expects an equation and a list of tensors", fn -> Ferrox.einsum(:ij, [t]) end},
          {"expected an equation such as", fn -> Ferrox.einsum("...j", [t]) end},
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
