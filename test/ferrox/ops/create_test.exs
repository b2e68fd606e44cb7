defmodule Ferrox.Ops.CreateTest do
  # Tensors that are made of numbers, and triangles and diagonals of matrices.
  use Ferrox.DirectCase, async: true

  alias Ferrox.{Complex, Promotion}

  describe "zeros/2, ones/2 and those like a tensor" do
    test "have the type of eye/2, or the given one" do
      for system <- [:nx, :jax, :numpy, :array_api], name <- [:zeros, :ones] do
        Promotion.with(system, fn ->
          assert apply(Ferrox, name, [{2}]).type == Ferrox.eye(2).type
        end)
      end

      for type <- real_types() ++ [:bool, {:c, 64}] do
        ones = Ferrox.ones({3, 1}, type: type)
        assert ones == Ferrox.as_type(Ferrox.full({3, 1}, 1), type)
        assert Ferrox.zeros({3, 1}, type: type) == Ferrox.as_type(Ferrox.full({3, 1}, 0), type)
        assert Ferrox.ones_like(Ferrox.zeros({3, 1}, type: type)) == ones
        assert Ferrox.full_like(ones, 0) == Ferrox.zeros_like(ones)
        assert Ferrox.full_like(ones, Ferrox.tensor(1.0)) == ones
      end
    end

    test "stay weak under JAX, unless a type is given" do
      Promotion.with(:jax, fn ->
        assert Ferrox.ones_like(Ferrox.tensor(2)).weak
        refute Ferrox.ones_like(Ferrox.tensor(2), type: :s64).weak
        refute Ferrox.ones({2}).weak
        assert Ferrox.fill(Ferrox.tensor(2), 3).weak
        refute Ferrox.fill(Ferrox.iota({2}), 3).weak
      end)
    end

    test "refuse what they can't hold" do
      t = Ferrox.iota({2}, type: :u8)
      raises("full_like: 300 does not fit u8", fn -> Ferrox.full_like(t, 300) end)
      raises("full_like: :nan does not fit u8", fn -> Ferrox.full_like(t, :nan) end)
      raises("a number or a scalar, got a tensor of shape {2}", fn -> Ferrox.full_like(t, t) end)
      raises("zeros expects a shape", fn -> Ferrox.zeros({0}) end)

      raises("ones expects a shape, a tuple of positive integers, got: 3", fn ->
        Ferrox.ones(3)
      end)

      raises("zeros: unknown option :names", fn -> Ferrox.zeros({2}, names: [:x]) end)
      raises("ones_like: expected a Ferrox.Tensor or a number", fn -> Ferrox.ones_like([1]) end)
      assert Ferrox.full_like(3, 4) == Ferrox.tensor(4)
    end
  end

  test "fill/3 has the type of both, and broadcasts" do
    t = Ferrox.iota({2, 3}, type: :u8)
    assert Ferrox.fill(t, Ferrox.tensor([1, 2, 3])) |> Ferrox.to_list() == [[1, 2, 3], [1, 2, 3]]
    assert Ferrox.fill(t, -1).type == {:s, 16}
    assert list(Ferrox.fill(t, true, promotion: :numpy)) == [1, 1, 1, 1, 1, 1]

    assert Ferrox.fill(t, 0.5, promotion: :numpy).type ==
             Ferrox.add(t, 0.5, promotion: :numpy).type

    raises("fill: a value of shape {2} does not broadcast to shape {2, 3}", fn ->
      Ferrox.fill(t, Ferrox.iota({2}))
    end)

    raises("fill: unknown option :names", fn -> Ferrox.fill(t, 1, names: [:x]) end)
  end

  describe "linspace/3" do
    test "ends with the number that was given" do
      for n <- 2..200 do
        numbers = Ferrox.to_list(Ferrox.linspace(0.1, 0.7, n: n, type: :f64))
        assert length(numbers) == n
        assert {hd(numbers), List.last(numbers)} == {0.1, 0.7}
        assert numbers == Enum.sort(numbers)
      end
    end

    test "rounds once" do
      third = Ferrox.linspace(0, 1, n: 4, type: :f64) |> Ferrox.to_list() |> Enum.at(1)
      assert third == 1 / 3
      assert Ferrox.linspace(0, 1, n: 4) |> Ferrox.to_list() |> Enum.at(1) == 0.3333333432674408
      # The steps of bf16 alone would add up to something else.
      wide = Ferrox.as_type(Ferrox.linspace(0, 1000, n: 500, type: :f64), :bf16)
      assert Ferrox.linspace(0, 1000, n: 500, type: :bf16) == wide
    end

    test "has the type of a quotient, or the given one" do
      f64 = Ferrox.tensor(1.0, type: :f64)
      assert Ferrox.type(Ferrox.linspace(0, 1, n: 2)) == {:f, 32}
      assert Ferrox.type(Ferrox.linspace(0, f64, n: 2)) == {:f, 64}
      assert Ferrox.type(Ferrox.linspace(0, 1, n: 2, promotion: :numpy)) == {:f, 64}
      assert Ferrox.type(Ferrox.linspace(0, 1, n: 2, type: :f16)) == {:f, 16}

      assert Ferrox.linspace(0, Complex.new(0, 2), n: 3) |> Ferrox.to_list() ==
               [Complex.new(0.0, 0.0), Complex.new(0.0, 1.0), Complex.new(0.0, 2.0)]

      raises("linspace is not defined for bool", fn ->
        Ferrox.linspace(false, true, n: 2, promotion: :array_api)
      end)
    end

    test "of one number is the start" do
      assert Ferrox.to_list(Ferrox.linspace(3, 5, n: 1)) == [3.0]

      assert Ferrox.shape(Ferrox.linspace(Ferrox.iota({2, 3}), Ferrox.iota({2, 3}), n: 1)) ==
               {2, 3, 1}
    end

    test "refuses what it can't do" do
      for n <- [nil, 0, -1, 2.0],
          do:
            raises(":n must be a positive integer, got: #{inspect(n)}", fn ->
              Ferrox.linspace(0, 1, n: n)
            end)

      raises("the same shape, got: {} and {2}", fn ->
        Ferrox.linspace(0, Ferrox.iota({2}), n: 2)
      end)

      raises(":endpoint must be a boolean", fn -> Ferrox.linspace(0, 1, n: 2, endpoint: 1) end)
      raises("unknown option :num", fn -> Ferrox.linspace(0, 1, num: 2) end)
    end
  end

  describe "logspace/3" do
    test "has the powers of linspace/3, rounded once" do
      exponents = Ferrox.linspace(-2, 3, n: 7, type: :f64)
      powers = Ferrox.pow(2, exponents)
      assert Ferrox.logspace(-2, 3, n: 7, base: 2, type: :f64) == powers
      assert Ferrox.logspace(-2, 3, n: 7, base: 2) == Ferrox.as_type(powers, :f32)
      assert Ferrox.logspace(-2, 3, n: 7, base: 2, promotion: :numpy) == powers
      assert Ferrox.logspace(0, 2, n: 2, endpoint: false) |> Ferrox.to_list() == [1.0, 10.0]

      assert Ferrox.logspace(0, 4, n: 5, type: :s32) |> Ferrox.to_list() == [
               1,
               10,
               100,
               1000,
               10_000
             ]
    end

    test "refuses what it can't do" do
      raises("logspace: :base must be a number, got: :e", fn ->
        Ferrox.logspace(0, 1, n: 2, base: :e)
      end)

      raises("logspace: :n must be a positive integer, got: nil", fn -> Ferrox.logspace(0, 1) end)

      raises("logspace: start and stop must have the same shape", fn ->
        Ferrox.logspace(0, Ferrox.iota({2}), n: 2)
      end)
    end
  end

  describe "arange/3" do
    test "counts integers of every size" do
      last = 0xFFFF_FFFF_FFFF_FFFF
      assert Ferrox.to_list(Ferrox.arange(5)) == Enum.to_list(0..4)
      assert Ferrox.to_list(Ferrox.arange(5, -5, step: -3)) == [5, 2, -1, -4]
      assert Ferrox.to_list(Ferrox.arange(last - 1, last + 1, type: :u64)) == [last - 1, last]
      least = -0x8000_0000_0000_0000
      assert Ferrox.to_list(Ferrox.arange(least, least + 2, type: :s64)) == [least, least + 1]
      assert Ferrox.to_list(Ferrox.arange(2, 0, step: -1, type: :u2)) == [2, 1]
      assert Ferrox.to_list(Ferrox.arange(2 ** 70, 2 ** 70 + 1, type: :f64)) == [2.0 ** 70]
    end

    test "infers the type as tensor/2 does" do
      assert Ferrox.type(Ferrox.arange(3)) == {:s, 32}
      assert Ferrox.type(Ferrox.arange(0, 3, step: 0.5)) == {:f, 32}
      Promotion.with(:numpy, fn -> assert Ferrox.type(Ferrox.arange(3)) == {:s, 64} end)
      assert Ferrox.type(Ferrox.arange(0, 3, type: :f16)) == {:f, 16}
    end

    test "does not add up rounding errors" do
      numbers = Ferrox.to_list(Ferrox.arange(0.0, 1000.0, step: 0.1, type: :f64))
      assert numbers == for(i <- 0..9999, do: i * 0.1)
    end

    test "refuses what it can't do" do
      raises("no number lies from 0 to before -1 in steps of 1", fn -> Ferrox.arange(0, -1) end)
      raises("the step must not be zero", fn -> Ferrox.arange(0, 1, step: 0) end)
      raises("the step must not be zero", fn -> Ferrox.arange(0, 1, step: 0.0) end)
      raises("300 does not fit u8", fn -> Ferrox.arange(0, 301, type: :u8) end)
      raises("-1 does not fit u8", fn -> Ferrox.arange(-1, 3, type: :u8) end)
      raises("does not fit s32", fn -> Ferrox.arange(0, 1, step: 0.3, type: :s32) end)
      raises("does not fit into memory", fn -> Ferrox.arange(0, 1, step: 1.0e-30) end)

      raises("stop must be an integer or a float, got: :infinity", fn ->
        Ferrox.arange(0, :infinity)
      end)
    end
  end

  @types ~w(u2 s4 u8 s64 f8 bf16 f32 c64)a

  describe "triangles and diagonals" do
    # What a function of row and column keeps of a tensor.
    defp masked(%{shape: shape} = tensor, keep?) do
      [columns, rows | _] = shape |> Tuple.to_list() |> Enum.reverse()

      tensor
      |> Ferrox.to_flat_list()
      |> Enum.with_index()
      |> Enum.map(fn {x, i} ->
        if keep?.(rem(div(i, columns), rows), rem(i, columns)), do: real(x), else: 0
      end)
    end

    defp real(%{re: re}), do: re
    defp real(number), do: number

    test "are those of each matrix, for every type and diagonal" do
      for type <- @types, shape <- [{3, 4}, {4, 2}, {2, 2, 3}, {1, 1}], k <- -5..5 do
        tensor = Ferrox.full(shape, 1, type: type)
        [columns, rows | _] = shape |> Tuple.to_list() |> Enum.reverse()
        flat = &Enum.map(Ferrox.to_flat_list(&1), fn x -> real(x) end)

        assert flat.(Ferrox.tril(tensor, k: k)) == masked(tensor, &(&2 <= &1 + k))
        assert flat.(Ferrox.triu(tensor, k: k)) == masked(tensor, &(&2 >= &1 + k))
        assert Ferrox.type(Ferrox.triu(tensor, k: k)) == Ferrox.Type.normalize!(type)

        if tuple_size(shape) == 2 do
          ones = Ferrox.full(shape, 1)

          assert Ferrox.to_flat_list(Ferrox.tri(rows, columns, k: k)) ==
                   masked(ones, &(&2 <= &1 + k))
        end
      end
    end

    test "are taken, made and put" do
      for {rows, columns} = shape <- [{3, 4}, {4, 2}, {3, 3}, {1, 5}],
          k <- (1 - rows)..(columns - 1) do
        matrix = Ferrox.iota(shape)
        taken = for r <- 0..(rows - 1), c = r + k, c in 0..(columns - 1), do: r * columns + c
        diagonal = Ferrox.take_diagonal(matrix, offset: k)
        assert Ferrox.to_list(diagonal) == taken

        batch = Ferrox.stack([matrix, Ferrox.add(matrix, 100)])

        assert Ferrox.to_list(Ferrox.take_diagonal(batch, offset: k)) == [
                 taken,
                 Enum.map(taken, &(&1 + 100))
               ]

        put = Ferrox.put_diagonal(matrix, Ferrox.add(diagonal, 1000), offset: k)
        expected = for i <- 0..(rows * columns - 1), do: if(i in taken, do: i + 1000, else: i)
        assert Ferrox.to_flat_list(put) == expected

        made = Ferrox.make_diagonal(diagonal, offset: k)
        size = length(taken) + abs(k)
        assert Ferrox.shape(made) == {size, size}
        assert Ferrox.take_diagonal(made, offset: k) == diagonal
        assert Ferrox.sum(made) == Ferrox.sum(diagonal)
      end
    end

    test "keep the type, bool included, or promote it" do
      bool = Ferrox.tensor([[true, true], [true, true]], type: :bool)
      assert Ferrox.to_list(Ferrox.triu(bool)) == [[true, true], [false, true]]

      assert Ferrox.to_list(Ferrox.make_diagonal(Ferrox.take_diagonal(bool))) == [
               [true, false],
               [false, true]
             ]

      assert Ferrox.type(Ferrox.tri(2, 2, promotion: :jax)) == :bool
      half = Ferrox.tensor([0.5, 0.5])
      assert Ferrox.to_list(Ferrox.put_diagonal(Ferrox.eye(2), half)) == [[0.5, 0.0], [0.0, 0.5]]
    end

    test "refuse shapes and diagonals that are not there" do
      raises("tril expects a tensor of at least two axes, got shape {2}", fn ->
        Ferrox.tril(Ferrox.iota({2}))
      end)

      raises("make_diagonal expects a tensor of one axis", fn ->
        Ferrox.make_diagonal(Ferrox.eye(2))
      end)

      raises("put_diagonal expects a matrix", fn -> Ferrox.put_diagonal(Ferrox.iota({2}), 1) end)

      raises("takes shape {1}, got: {2}", fn ->
        Ferrox.put_diagonal(Ferrox.eye(2), Ferrox.iota({2}), offset: 1)
      end)

      raises(":offset must be from -1 to 1", fn ->
        Ferrox.take_diagonal(Ferrox.eye(2), offset: 2)
      end)

      raises(":k must be an integer, got: 0.5", fn -> Ferrox.tril(Ferrox.eye(2), k: 0.5) end)
      raises("tri expects a shape", fn -> Ferrox.tri(2, 0) end)
    end
  end

  describe "log2/2 and log10/2" do
    test "are whole numbers for powers of the base" do
      for type <- [:f32, :f64] do
        tens = for i <- 0..22, do: 10.0 ** i

        assert Ferrox.to_list(Ferrox.log10(Ferrox.tensor(tens, type: type))) ==
                 Enum.map(0..22, &(&1 * 1.0))

        twos = for i <- -100..100, do: 2.0 ** i

        assert Ferrox.to_list(Ferrox.log2(Ferrox.tensor(twos, type: type))) ==
                 Enum.map(-100..100, &(&1 * 1.0))
      end
    end

    test "have the special values of log, and its types" do
      t = Ferrox.tensor([0.0, -1.0, :infinity, :nan, 1.0])

      for f <- [&Ferrox.log2/1, &Ferrox.log10/1],
          do: assert(Ferrox.to_list(f.(t)) == Ferrox.to_list(Ferrox.log(t)))

      assert Ferrox.type(Ferrox.log2(Ferrox.tensor([1]), promotion: :numpy)) == {:f, 64}
      assert Ferrox.type(Ferrox.log2(Ferrox.tensor([1.0], type: :c64))) == {:c, 64}
    end
  end

  describe "complex/3 and bitcast/2" do
    test "complex numbers have the given parts" do
      re = Ferrox.tensor([[1.0], [:infinity]])
      im = Ferrox.tensor([:nan, -0.0])
      z = Ferrox.complex(re, im)
      assert {z.type, z.shape} == {{:c, 64}, {2, 2}}
      assert Ferrox.real(z) == Ferrox.broadcast(re, {2, 2})
      assert Ferrox.imag(z) == Ferrox.broadcast(im, {2, 2})
      assert Ferrox.type(Ferrox.complex(Ferrox.tensor(1.0, type: :f64), 0)) == {:c, 128}
      assert Ferrox.to_number(Ferrox.complex(1, 2)) == Complex.new(1.0, 2.0)
      raises("the parts must be real, got: c64 and c64", fn -> Ferrox.complex(z, z) end)

      raises("complex: shapes {2} of s32 and {3}", fn ->
        Ferrox.complex(Ferrox.iota({2}), Ferrox.iota({3}))
      end)
    end

    test "bits stay" do
      t = Ferrox.tensor([1.5, -2.0])
      assert t |> Ferrox.bitcast(:s32) |> Ferrox.bitcast(:f32) == t

      raises("not every byte is a bool", fn ->
        Ferrox.bitcast(Ferrox.tensor([2], type: :u8), :bool)
      end)
    end
  end

  test "all_close/3" do
    a = Ferrox.tensor([1.0, :nan, :infinity])
    assert Ferrox.to_number(Ferrox.all_close(a, a)) == 0
    assert Ferrox.to_number(Ferrox.all_close(a, a, equal_nan: true)) == 1
    assert Ferrox.to_number(Ferrox.all_close(Ferrox.tensor([1.0, 2.0]), 1.5, atol: 0.5)) == 1
    assert Ferrox.to_number(Ferrox.all_close(1.0, 1.1, rtol: 0.2, promotion: :numpy)) == true

    raises(":rtol must be a number that is not negative, got: -1", fn ->
      Ferrox.all_close(1, 1, rtol: -1)
    end)

    raises("all_close: shapes {2} of s32 and {3}", fn ->
      Ferrox.all_close(Ferrox.iota({2}), Ferrox.iota({3}))
    end)
  end

  test "outer/3" do
    assert Ferrox.outer(Ferrox.iota({2, 2}), 2.0) |> Ferrox.to_list() == [
             [0.0],
             [2.0],
             [4.0],
             [6.0]
           ]

    assert Ferrox.type(Ferrox.outer(1, 2, promotion: :numpy)) == {:s, 64}
  end
end
