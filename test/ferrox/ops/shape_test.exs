defmodule Ferrox.Ops.ShapeTest do
  # Arrangements of elements: every type, edges and errors. Values are compared with NumPy's in
  # test/ferrox/numpy_test.exs.
  use Ferrox.DirectCase, async: true

  @types [:bool] ++
           for(
             type <-
               ~w(u2 u4 u8 u16 u32 u64 s2 s4 s8 s16 s32 s64 f8 f8_e4m3fn f16 bf16 f32 f64 c64 c128)a,
             do: Ferrox.Type.normalize!(type)
           )

  test "elements of every type are moved" do
    for type <- @types do
      t = Ferrox.as_type(Ferrox.tensor([[1, 0, 0], [0, 1, 1]]), type)
      as = &Ferrox.as_type(Ferrox.tensor(&1), type)
      assert Ferrox.roll(t, 1) == as.([[1, 1, 0], [0, 0, 1]])
      assert Ferrox.roll(t, -1, axis: 1) == as.([[0, 0, 1], [1, 1, 0]])
      assert Ferrox.swapaxes(t, 0, 1) == as.([[1, 0], [0, 1], [0, 1]])
      assert Ferrox.moveaxis(t, -1, 0) == Ferrox.swapaxes(t, 0, 1)
      assert Ferrox.array_split(t, [1], axis: 1) == [as.([[1], [0]]), as.([[0, 0], [1, 1]])]
      assert [_, rows] = Ferrox.meshgrid([t[0], t[1]])
      assert rows == as.([[0, 0, 0], [1, 1, 1], [1, 1, 1]])
    end
  end

  test "parts of so many rows, of every type" do
    for type <- @types do
      t = Ferrox.as_type(Ferrox.tensor([[1, 0, 0], [0, 1, 1], [1, 1, 0]]), type)
      assert [a, b] = Enum.to_list(Ferrox.to_batched(t, 2))
      assert {a, b} == {t[0..1], Ferrox.take(t, Ferrox.tensor([2, 0]))}
      assert Ferrox.reverse(Ferrox.reverse(b)) == b
      assert Enum.to_list(Ferrox.to_batched(t, 2, leftover: :discard)) == [a]
      assert Enum.to_list(Ferrox.to_batched(t, 3)) == [t]
      assert Enum.to_list(Ferrox.to_batched(t, 1)) == for(i <- 0..2, do: t[i..i])
    end

    raises("to_batched: a part of shape {3} must have from 1 to 3 rows, got: 0", fn ->
      Ferrox.to_batched(Ferrox.iota({3}), 0)
    end)

    raises(":leftover must be :repeat or :discard, got: true", fn ->
      Ferrox.to_batched(Ferrox.iota({3}), 2, leftover: true)
    end)

    raises("got a scalar", fn -> Ferrox.to_batched(1, 1) end)
  end

  test "elements around the tensor, of every type" do
    for type <- @types do
      t = Ferrox.as_type(Ferrox.tensor([[1, 0, 0], [0, 1, 1]]), type)
      as = &Ferrox.as_type(Ferrox.tensor(&1), type)
      outer = &Ferrox.pad_outer(t, &1, [{0, 0}, {&2, &3}])
      assert outer.(:replicate, 1, 2) == as.([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 1]])
      assert outer.(:reflect, 1, 2) == as.([[0, 1, 0, 0, 0, 1], [1, 0, 1, 1, 1, 0]])
      assert outer.(:mirror, 1, -1) == as.([[1, 1, 0], [0, 0, 1]])
      assert outer.(:cyclic, -1, 2) == as.([[0, 0, 1, 0], [1, 1, 0, 1]])
      assert outer.(0, 1, 0) == Ferrox.pad(t, 0, [{0, 0, 0}, {1, 0, 0}])

      assert Ferrox.reflect(t, padding_config: [{1, 0}, {0, 0}]) ==
               as.([[0, 1, 1], [1, 0, 0], [0, 1, 1]])

      assert Ferrox.pad_outer(t[0][0], :mirror, []) == t[0][0]
    end

    # Types are those of pad/4 with a value, and stay without one.
    assert Ferrox.pad_outer(Ferrox.iota({2}), :nan, [{1, 0}]) |> list() == [:nan, 0.0, 1.0]
    assert Ferrox.pad_outer(Ferrox.iota({2}), 0.5, [{1, 0}], promotion: :numpy).type == {:f, 64}
    assert Ferrox.pad_outer(Ferrox.iota({2}), :cyclic, [{-2, 1}]) |> list() == [0]
  end

  test "padding that can't be is refused" do
    t = Ferrox.iota({2, 3})

    for wrong <- [[{1, 1}], [{1, 1}, {1, 1, 0}], [{1, 1}, {0.5, 1}], 1] do
      raises(
        "pad_outer: the padding must be a list of {low, high}, two integers for each axis",
        fn ->
          Ferrox.pad_outer(t, :mirror, wrong)
        end
      )

      raises("pad_outer: the padding must be a list", fn -> Ferrox.pad_outer(t, 0, wrong) end)

      raises("reflect: :padding_config must be", fn ->
        Ferrox.reflect(t, padding_config: wrong)
      end)
    end

    raises("pad_outer: nothing is left of shape {2, 3} with padding [{-1, -1}, {0, 0}]", fn ->
      Ferrox.pad_outer(t, :mirror, [{-1, -1}, {0, 0}])
    end)

    raises("does not fit into memory", fn ->
      Ferrox.pad_outer(t, :mirror, [{0, 2 ** 62}, {0, 2 ** 62}])
    end)

    raises("pad_outer: unknown option :kind", fn -> Ferrox.pad_outer(t, :mirror, [], kind: 1) end)
  end

  test "tensors one upon the other and side by side" do
    for type <- @types -- [:bool] do
      t = Ferrox.as_type(Ferrox.tensor([[1, 0, 0], [0, 1, 1]]), type)
      assert Ferrox.vstack([t[0], t[1]]) == t
      assert Ferrox.vstack([t[0..0], t[1]]) == t
      assert Ferrox.hstack([t[0], t[1]]) == Ferrox.flatten(t)
      assert Ferrox.hstack([t[[0..1, 0..1]], t[[0..1, 2..2]]]) == t
    end

    assert Ferrox.to_list(Ferrox.vstack([1, 2])) == [[1], [2]]
    assert Ferrox.to_list(Ferrox.hstack([1, Ferrox.tensor([2, 3])])) == [1, 2, 3]

    assert Ferrox.vstack([Ferrox.iota({2}), 0.5 |> Ferrox.broadcast({2})], promotion: :numpy).type ==
             {:f, 64}

    for name <- [:vstack, :hstack] do
      raises("#{name} expects a list of at least one tensor, got: []", fn ->
        apply(Ferrox, name, [[]])
      end)

      raises("#{name}: the list of tensors is improper", fn -> apply(Ferrox, name, [[1 | 2]]) end)

      raises("#{name}: expected a Ferrox.Tensor or a number, got: :a", fn ->
        apply(Ferrox, name, [[:a]])
      end)

      raises("#{name}: unknown option :axis", fn -> apply(Ferrox, name, [[1], [axis: 1]]) end)
    end

    raises("vstack: shapes {1, 2}, {1, 3} can't be joined along axis 0", fn ->
      Ferrox.vstack([Ferrox.iota({2}), Ferrox.iota({3})])
    end)
  end

  test "a shift may be of any size, and scalars stay" do
    t = Ferrox.iota({3})
    assert Ferrox.roll(t, 3 * 10 ** 30 + 1) == Ferrox.roll(t, 1)
    assert Ferrox.roll(t, -(10 ** 30)) == Ferrox.roll(t, -1)
    assert Ferrox.roll(7, 5) == Ferrox.tensor(7)
    assert Ferrox.array_split(t, 1) == [t]
    assert Ferrox.roll(Ferrox.tensor(7, promotion: :jax), 1).weak
  end

  test "what can't be is refused" do
    t = Ferrox.iota({2, 3})
    raises("roll: the shift must be an integer, got: 1.0", fn -> Ferrox.roll(t, 1.0) end)
    raises("roll: axis 2 is out of range for shape {2, 3}", fn -> Ferrox.roll(t, 1, axis: 2) end)
    raises("roll: unknown option :axes", fn -> Ferrox.roll(t, 1, axes: [1]) end)
    raises("swapaxes: axis 2 is out of range", fn -> Ferrox.swapaxes(t, 0, 2) end)
    raises("moveaxis: axis -3 is out of range", fn -> Ferrox.moveaxis(t, -3, 0) end)

    raises("meshgrid expects vectors, got a tensor of shape {2, 3}", fn ->
      Ferrox.meshgrid([t])
    end)

    raises("meshgrid expects a list of at least one vector, got: []", fn ->
      Ferrox.meshgrid([])
    end)

    raises("meshgrid: :indexing must be :xy or :ij, got: :yx", fn ->
      Ferrox.meshgrid([t[0]], indexing: :yx)
    end)

    for parts <- [0, 3, -1, 1.5, [0], [2], [1, 1], [:a], [1 | 2]] do
      raises("array_split: axis 0 of shape {2, 3} can't be split by", fn ->
        Ferrox.array_split(t, parts)
      end)
    end

    raises("array_split: axis 0 is out of range for shape {}", fn -> Ferrox.array_split(1, 1) end)
  end
end
