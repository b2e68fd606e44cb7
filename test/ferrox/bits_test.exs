defmodule Ferrox.BitsTest do
  use ExUnit.Case, async: true

  import Ferrox.Bits

  doctest Ferrox.Bits

  test "a bound size works in patterns, generators and clauses" do
    bits = 4
    assert for(<<x::bound_size(bits) <- "\x12\x34">>, do: x) == [1, 2, 3, 4]

    bytes = 2

    assert (case "abc" do
              <<head::binary-bound_size(bytes), _::binary>> -> head
            end) == "ab"
  end
end
