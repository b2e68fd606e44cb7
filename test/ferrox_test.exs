defmodule FerroxTest do
  use Ferrox.DirectCase, async: true

  # What is observed concerns all processes: test/ferrox/observer_test.exs has the rest.
  doctest Ferrox,
    except:
      [observe: 1, stats: 0, reset_stats: 0] ++
        if(Code.ensure_loaded?(Nx), do: [], else: [from_nx: 1, to_nx: 1]) ++
        if(Code.ensure_loaded?(Explorer), do: [], else: [from_series: 1, to_series: 1])

  doctest Ferrox.Tensor

  @types for type <- ~w(u2 u4 u8 u16 u32 u64 s2 s4 s8 s16 s32 s64 f8 f8_e4m3fn f16 bf16 f32 f64
                        c64 c128)a,
             do: Ferrox.Type.normalize!(type)

  # Whoever adds a type and forgets one of the tables in Elixir fails here.
  test "every type can be made, computed with, printed and saved" do
    for type <- Ferrox.Promotion.types(:nx), is_tuple(type) do
      tensor = Ferrox.tensor([0, 1], type: type)
      name = Ferrox.Type.to_string(type)
      assert Ferrox.to_flat_list(Ferrox.add(tensor, tensor)) |> length() == 2
      assert Ferrox.Type.normalize!(String.to_existing_atom(name)) == type
      assert inspect(tensor) =~ ~r/^#Ferrox.Tensor<\s+#{name}\[2\]\s+\[0(.0)?/

      assert_raise ArgumentError, ~r/tensor: .* does not fit #{name}/, fn ->
        Ferrox.tensor(Integer.pow(10, 400), type: type)
      end

      try do
        Ferrox.Npy.encode!(tensor)
      rescue
        error in ArgumentError -> assert error.message =~ "npy: NumPy has no #{name}"
      else
        file -> assert file |> IO.iodata_to_binary() |> Ferrox.Npy.decode!() == tensor
      end
    end
  end

  describe "tensor/2" do
    test "infers the type as Nx does" do
      assert Ferrox.type(Ferrox.tensor(1)) == {:s, 32}
      assert Ferrox.type(Ferrox.tensor([1, 2.0])) == {:f, 32}
      assert Ferrox.type(Ferrox.tensor([true, false])) == {:u, 8}
      assert Ferrox.type(Ferrox.tensor([true, 2])) == {:s, 32}
      assert Ferrox.type(Ferrox.tensor([1, Ferrox.Complex.new(1, 2)])) == {:c, 64}
      assert Ferrox.type(Ferrox.tensor(:nan)) == {:f, 32}
    end

    test "holds small integers in every type and gives them back" do
      for type <- @types do
        expected = Ferrox.as_type(Ferrox.tensor([[1, 0, 1]]), type)
        assert Ferrox.tensor([[1, 0, 1]], type: type) == expected
        assert Enum.map(Ferrox.to_flat_list(expected), &real/1) == [1, 0, 1]
        assert Ferrox.byte_size(expected) == ceil(3 * elem(type, 1) / 8)
      end
    end

    test "keeps the limits of integer types and refuses what is past them" do
      for {kind, bits} = type <- @types, kind in [:s, :u] do
        max = Bitwise.bsl(1, if(kind == :s, do: bits - 1, else: bits)) - 1
        min = if kind == :s, do: -max - 1, else: 0
        assert Ferrox.to_flat_list(Ferrox.tensor([min, max], type: type)) == [min, max]
        raises("#{max + 1} does not fit", fn -> Ferrox.tensor([0, max + 1], type: type) end)
        raises("#{min - 1} does not fit", fn -> Ferrox.tensor(min - 1, type: type) end)
      end
    end

    test "refuses an integer past s32 unless a type is given" do
      raises("4294967296 does not fit s32; give a wider :type", fn ->
        Ferrox.tensor(4_294_967_296)
      end)

      assert Ferrox.to_number(Ferrox.tensor(4_294_967_296, type: :s64)) == 4_294_967_296
    end

    test "keeps the limits of float types and refuses finite numbers past them" do
      for {type, max, over} <- [
            {:f8, 57344.0, 61440.0},
            {:f8_e4m3fn, 448.0, 464.0},
            {:f16, 65504.0, 65520.0},
            {:bf16, 3.3895313892515355e38, 3.3961775292304601e38},
            {:f32, 3.4028234663852886e38, 3.4028235677973366e38}
          ] do
        assert Ferrox.to_flat_list(Ferrox.tensor([max, -max], type: type)) == [max, -max]
        raises("does not fit #{type}", fn -> Ferrox.tensor([over], type: type) end)
        raises("does not fit #{type}", fn -> Ferrox.tensor(-over, type: type) end)
      end

      raises("does not fit f64", fn -> Ferrox.tensor(10 ** 400, type: :f64) end)
    end

    test "refuses a number of the wrong kind" do
      raises("1.5 does not fit s32; give a float :type", fn ->
        Ferrox.tensor([1, 1.5], type: :s32)
      end)

      raises(":nan does not fit u8", fn -> Ferrox.tensor(:nan, type: :u8) end)
      raises("does not fit f32", fn -> Ferrox.tensor(Ferrox.Complex.new(1, 2), type: :f32) end)
    end

    test "refuses what is no tensor" do
      raises("an empty list has no shape", fn -> Ferrox.tensor([]) end)
      raises("an empty list has no shape", fn -> Ferrox.tensor([[], []]) end)
      raises("one of length 3 where others have 2", fn -> Ferrox.tensor([[1, 2], [1, 2, 3]]) end)
      raises("expected a number, got: [1]", fn -> Ferrox.tensor([1, [1]]) end)
      raises("expected a list of length 1, got: 1", fn -> Ferrox.tensor([[1], 1]) end)
      raises("expected a number, got: \"a\"", fn -> Ferrox.tensor(["a"]) end)
      raises("got: :atom", fn -> Ferrox.tensor(:atom) end)
      raises("invalid numerical type: {:f, 33}", fn -> Ferrox.tensor(1, type: {:f, 33}) end)
      raises("unknown option :typ, known are :type", fn -> Ferrox.tensor(1, typ: :u8) end)
    end
  end

  defp real(%{re: re}), do: re
  defp real(number), do: number

  describe "creation" do
    test "eye, iota and full of every type" do
      for type <- @types do
        one = fn tensor -> Enum.map(Ferrox.to_flat_list(tensor), &real/1) end
        assert one.(Ferrox.eye({2, 2, 2}, type: type)) == [1, 0, 0, 1, 1, 0, 0, 1]
        assert one.(Ferrox.iota({2}, type: type)) == [0, 1]
        assert one.(Ferrox.full({3}, 1, type: type)) == [1, 1, 1]
      end
    end

    test "shapes that can't be are refused" do
      for shape <- [{0}, {2, -1}, {1.0}, :scalar, [2]] do
        raises("expects a shape, a tuple of positive integers, got: #{inspect(shape)}", fn ->
          Ferrox.iota(shape)
        end)
      end

      for shape <- [{2 ** 62, 4}, {2 ** 63}, {10 ** 30}] do
        raises("iota: a tensor of shape #{inspect(shape)} does not fit into memory", fn ->
          Ferrox.iota(shape)
        end)
      end
    end

    test "a tensor larger than memory raises and the VM lives" do
      raises(
        "iota: a tensor of type s32 and shape {1000000000000000} does not fit into memory",
        fn ->
          Ferrox.iota({1_000_000_000_000_000})
        end
      )

      raises("does not fit into memory", fn ->
        Ferrox.broadcast(1.0, {1_000_000_000, 1_000_000})
      end)

      row = Ferrox.iota({1, 10_000_000}, type: :u8)
      column = Ferrox.iota({10_000_000, 1}, type: :u8)

      raises(
        "add: a tensor of type u8 and shape {10000000, 10000000} does not fit into memory",
        fn ->
          Ferrox.add(row, column)
        end
      )
    end
  end

  describe "shape rules" do
    test "shapes that don't broadcast raise with the operation, the types and the shapes" do
      raises(
        "add: shapes {2, 3} of s32 and {2} of f32 don't broadcast together",
        fn -> Ferrox.add(Ferrox.iota({2, 3}), Ferrox.tensor([1.0, 2.0])) end
      )

      raises("broadcast: shapes {2} and {3}", fn -> Ferrox.broadcast(Ferrox.iota({2}), {3}) end)

      raises("broadcast: shapes {2, 1} and {2}", fn ->
        Ferrox.broadcast(Ferrox.iota({2, 1}), {2})
      end)

      raises("select: shapes", fn ->
        Ferrox.select(Ferrox.tensor([1, 0]), Ferrox.iota({3}), 0)
      end)
    end

    test "axes out of range raise with the shape" do
      t = Ferrox.iota({2, 3})

      for fun <- [
            &Ferrox.sum(t, axes: [&1]),
            &Ferrox.argmax(t, axis: &1),
            &Ferrox.transpose(t, axes: [&1, 0]),
            &Ferrox.concatenate([t], axis: &1),
            &Ferrox.squeeze(t, axes: [&1]),
            &Ferrox.iota({2, 3}, axis: &1)
          ],
          axis <- [2, -3, :x, 1.0] do
        raises("axis #{inspect(axis)} is out of range for shape {2, 3}", fn -> fun.(axis) end)
      end

      raises("name an axis twice", fn -> Ferrox.sum(t, axes: [0, -2]) end)
      raises("must name each axis", fn -> Ferrox.transpose(t, axes: [0]) end)
      raises("axis 4 is out of range", fn -> Ferrox.new_axis(t, 4) end)
    end

    test "products of axes that differ raise" do
      raises("dot: shapes {2, 3} and {2, 3} differ in the sizes", fn ->
        Ferrox.dot(Ferrox.iota({2, 3}), Ferrox.iota({2, 3}))
      end)

      raises("or of the batch", fn ->
        Ferrox.dot(Ferrox.iota({2, 3}), [1], [0], Ferrox.iota({3, 3}), [1], [0])
      end)
    end

    test "tensors that can't be joined raise" do
      raises("concatenate: shapes {2, 3}, {2, 2} can't be joined along axis 0", fn ->
        Ferrox.concatenate([Ferrox.iota({2, 3}), Ferrox.iota({2, 2})])
      end)

      raises("stack: shapes {2}, {3} can't be joined", fn ->
        Ferrox.stack([Ferrox.iota({2}), Ferrox.iota({3})])
      end)

      raises("expects a list of at least one tensor", fn -> Ferrox.concatenate([]) end)
    end

    test "slices out of range raise, starts are moved back" do
      t = Ferrox.iota({3, 4})
      assert Ferrox.to_list(Ferrox.slice(t, [2, 3], [2, 2])) == [[6, 7], [10, 11]]
      assert Ferrox.to_list(Ferrox.slice(t, [-1, 0], [1, 2])) == [[0, 1]]

      raises("slice: length 0 is out of range for axis 1", fn ->
        Ferrox.slice(t, [0, 0], [1, 0])
      end)

      raises("slice: stride 0", fn -> Ferrox.slice(t, [0, 0], [1, 1], strides: 0) end)
      raises("slice: starts must have one entry", fn -> Ferrox.slice(t, [0], [1, 1]) end)
      raises("slice: start :a", fn -> Ferrox.slice(t, [:a, 0], [1, 1]) end)
    end
  end

  describe "arithmetic that has no result" do
    test "integer division by zero" do
      zero = Ferrox.tensor([1, 0])

      for op <- [:quotient, :remainder] do
        raises("#{op} on s32 and s32: integer division by zero", fn ->
          apply(Ferrox, op, [Ferrox.tensor([1, 1]), zero])
        end)
      end
    end

    test "negative exponents and shifts of integers" do
      raises("pow on s32 and s32: an integer can't be raised to a negative exponent", fn ->
        Ferrox.pow(Ferrox.tensor([2]), -1)
      end)

      for op <- [:left_shift, :right_shift] do
        raises("#{op} on s32 and s32: can't shift by a negative number", fn ->
          apply(Ferrox, op, [Ferrox.tensor([2]), -1])
        end)
      end
    end

    test "operations on types that they are not defined for" do
      float = Ferrox.tensor([1.0])
      complex = Ferrox.tensor([Ferrox.Complex.new(1, 2)])

      for op <- ~w(quotient bitwise_and bitwise_or bitwise_xor left_shift right_shift)a do
        raises("#{op} is not defined for f32 and s32", fn ->
          apply(Ferrox, op, [float, Ferrox.tensor([1])])
        end)
      end

      for op <- ~w(remainder min max greater less greater_equal less_equal)a do
        raises("#{op} is not defined for c64 and c64", fn ->
          apply(Ferrox, op, [complex, complex])
        end)
      end

      for op <- ~w(reduce_max reduce_min argmax argmin)a do
        raises("is not defined for c64", fn -> apply(Ferrox, op, [complex]) end)
      end

      raises("atan2 on c64 and c64: the operands must be real", fn ->
        Ferrox.atan2(complex, complex)
      end)

      raises("bitwise_not is not defined for f32", fn -> Ferrox.bitwise_not(float) end)
      raises("sign is not defined for c64", fn -> Ferrox.sign(complex) end)
    end
  end

  describe "numbers as operands" do
    test "take on the type that they give the result" do
      t = Ferrox.tensor([1, 2], type: :u8)
      assert Ferrox.type(Ferrox.add(t, 255)) == {:u, 8}
      assert Ferrox.type(Ferrox.add(t, 256)) == {:u, 16}
      assert Ferrox.type(Ferrox.add(t, -1)) == {:s, 16}
      assert Ferrox.type(Ferrox.add(1.0, t)) == {:f, 32}
      assert Ferrox.type(Ferrox.add(t, Ferrox.Complex.new(0, 1))) == {:c, 64}
      assert Ferrox.type(Ferrox.add(t, true)) == {:u, 8}
      assert Ferrox.type(Ferrox.add(1, 2.0)) == {:f, 32}
    end

    test "lose nothing beside wider tensors" do
      f64 = Ferrox.tensor([1.0], type: :f64)
      assert Ferrox.to_list(Ferrox.add(f64, 0.1)) == [1.1]
      s64 = Ferrox.tensor([1], type: :s64)
      assert Ferrox.to_list(Ferrox.add(s64, 2 ** 40)) == [2 ** 40 + 1]
    end

    test "are compared and computed as they are" do
      f32 = Ferrox.tensor([16_777_216.0])
      assert Ferrox.to_list(Ferrox.equal(f32, 16_777_217)) == [0]
      assert Ferrox.to_list(Ferrox.subtract(16_777_217, f32)) == [1.0]
      bf16 = Ferrox.tensor([256.0], type: :bf16)
      assert Ferrox.to_list(Ferrox.equal(bf16, 257)) == [0]
      f16 = Ferrox.tensor([2048.0], type: :f16)
      assert Ferrox.to_list(Ferrox.subtract(2049, f16)) == [1.0]
      assert Ferrox.to_list(Ferrox.less(f16, 70_000)) == [1]
      assert Ferrox.to_list(Ferrox.clip(f16, 0, 1_000_000)) == [2048.0]
      assert Ferrox.to_list(Ferrox.equal(Ferrox.tensor([0.1]), 0.1)) == [1]
      assert Ferrox.to_list(Ferrox.less(Ferrox.tensor([1.0]), 1.0e300)) == [1]
      assert Ferrox.to_list(Ferrox.less(Ferrox.tensor([1]), 2 ** 64 - 1)) == [1]
    end

    test "that no type holds raise" do
      raises("#{2 ** 70} does not fit s64", fn ->
        Ferrox.add(Ferrox.tensor([1], type: :s8), 2 ** 70)
      end)
    end
  end

  test "options of the wrong kind raise" do
    t = Ferrox.iota({2, 3})
    raises("sum: :keep_axes must be a boolean, got: :no", fn -> Ferrox.sum(t, keep_axes: :no) end)
    raises("mean: :keep_axes must be a boolean", fn -> Ferrox.mean(t, keep_axes: 1) end)

    raises("argmax: :keep_axis must be a boolean", fn ->
      Ferrox.argmax(t, axis: 0, keep_axis: 0)
    end)

    raises("argmax: axis false", fn -> Ferrox.argmax(t, axis: false) end)
    raises("mean: unknown option :axis", fn -> Ferrox.mean(t, axis: 0) end)
    raises("must be in ascending order", fn -> Ferrox.broadcast(t, {3, 2}, axes: [1, 0]) end)
  end

  test "indices may have any real type" do
    t = Ferrox.tensor([[1, 3, 2]])
    assert Ferrox.to_list(Ferrox.argmax(t, axis: 1, type: :f32)) == [1.0]
    assert Ferrox.to_list(Ferrox.argmin(t, axis: 1, type: :u8)) == [0]
    raises("argmax is not defined", fn -> Ferrox.argmax(t, type: :c64) end)
  end

  test "products and means take a promotion system" do
    f64 = Ferrox.tensor([1.0], type: :f64)
    c64 = Ferrox.tensor([1.0], type: :c64)
    assert Ferrox.type(Ferrox.dot(f64, c64)) == {:c, 128}
    assert Ferrox.type(Ferrox.dot(f64, c64, promotion: :nx_0_9)) == {:c, 64}
    assert Ferrox.type(Ferrox.dot(f64, [0], c64, [0], promotion: :nx_0_9)) == {:c, 64}
    assert Ferrox.to_number(Ferrox.mean(Ferrox.tensor([1, 2]), promotion: :nx_0_9)) == 1.5
  end

  test "what is no operand raises" do
    raises("expected a Ferrox.Tensor or a number, got: \"1\"", fn -> Ferrox.exp("1") end)
    raises("got: [1]", fn -> Ferrox.add([1], 2) end)
    raises("unknown option :axis", fn -> Ferrox.sum(Ferrox.iota({2}), axis: 0) end)

    raises("unknown promotion system", fn ->
      Ferrox.add(Ferrox.iota({2}), Ferrox.tensor([1.0]), promotion: :none)
    end)

    raises(":tie_break must be :low or :high", fn -> Ferrox.argmax(1, tie_break: :middle) end)
    raises("clip: min must be a scalar", fn -> Ferrox.clip(1, Ferrox.iota({2}), 3) end)
  end

  test "data that don't match type and shape raise" do
    raises("a tensor of type f32 and shape {2} takes 8 bytes, got 4", fn ->
      Ferrox.exp(%Ferrox.Tensor{type: {:f, 32}, shape: {2}, data: <<0::32>>})
    end)
  end

  test "elements are not read from data of another size" do
    for {data, type, bits} <- [{<<1, 2, 3>>, {:u, 64}, 24}, {<<0::80>>, {:f, 64}, 80}] do
      raises("2 elements of #{Ferrox.Type.to_string(type)} take 128 bits, got #{bits}", fn ->
        Ferrox.to_flat_list(%Ferrox.Tensor{data: data, type: type, shape: {2}})
      end)
    end
  end

  test "data are not copied where they need not be" do
    binary = :binary.copy(<<1, 2, 3, 4>>, 1000)
    t = Ferrox.from_binary(binary, :f32)

    same =
      t
      |> Ferrox.reshape({10, 100})
      |> Ferrox.new_axis(0)
      |> Ferrox.squeeze()
      |> Ferrox.to_binary()

    assert :erts_debug.same(same, binary)
  end

  test "inputs may start at any byte" do
    <<_, data::binary>> = <<0, 1.0::float-64-native, 2.0::float-64-native>>
    t = Ferrox.from_binary(data, :f64)
    assert Ferrox.to_list(Ferrox.add(t, t)) == [2.0, 4.0]
    assert Ferrox.to_number(Ferrox.dot(t, t)) == 5.0
  end

  test "many processes at once get the right answers" do
    1..20
    |> Task.async_stream(fn i ->
      t = Ferrox.broadcast(i, {600, 600})
      Ferrox.to_number(Ferrox.sum(Ferrox.multiply(t, 2)))
    end)
    |> Enum.with_index(1)
    |> Enum.each(fn {{:ok, sum}, i} -> assert sum == 600 * 600 * 2 * i end)
  end
end
