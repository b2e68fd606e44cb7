defmodule Ferrox.SeriesTest do
  use ExUnit.Case, async: true

  @compile {:no_warn_undefined, [Explorer.Series, Nx, Nx.Defn]}

  test "what is no series, and what is no tensor" do
    assert_raise ArgumentError, "from_series expects an Explorer.Series, got: [1, 2]", fn ->
      Ferrox.from_series([1, 2])
    end

    assert_raise ArgumentError, ~r/^to_series expects a Ferrox.Tensor, got: 1/, fn ->
      Ferrox.to_series(1)
    end
  end

  if not Code.ensure_loaded?(Explorer) do
    test "without Explorer" do
      assert_raise ArgumentError, ~r/^to_series needs Explorer, .* add :explorer/, fn ->
        Ferrox.to_series(Ferrox.tensor([1]))
      end
    end
  end

  describe "with Explorer" do
    @describetag :explorer

    @types [:u8, :u16, :u32, :u64, :s8, :s16, :s32, :s64, :f32, :f64]

    test "a series of each type becomes a tensor, and back" do
      for type <- @types do
        series = Explorer.Series.from_list([1, 2, 3], dtype: type)
        tensor = Ferrox.from_series(series)
        assert tensor == Ferrox.tensor([1, 2, 3], type: type)
        assert tensor |> Ferrox.to_series() |> same?(series)
      end

      series = Explorer.Series.from_list([true, false, true])
      tensor = Ferrox.from_series(series)

      assert {tensor.type, tensor.shape, Ferrox.to_list(tensor)} ==
               {:bool, {3}, [true, false, true]}

      assert tensor |> Ferrox.to_series() |> same?(series)
    end

    test "categories, dates and times are the integers that stand for them" do
      category = Explorer.Series.from_list(~w(b a b), dtype: :category)
      assert %{type: {:u, 32}, shape: {3}} = codes = Ferrox.from_series(category)
      assert [same, other, same] = Ferrox.to_list(codes)
      assert same != other

      days = Explorer.Series.from_list([~D[1970-01-02], ~D[1969-12-31]])
      assert Ferrox.from_series(days) == Ferrox.tensor([1, -1], type: :s32)

      moments = Explorer.Series.from_list([~N[1970-01-01 00:00:01]])
      assert Ferrox.from_series(moments) == Ferrox.tensor([1_000_000], type: :s64)
    end

    test "a series in one piece is not copied, one in several pieces has the same elements" do
      numbers = Enum.to_list(1..10_000)
      series = Explorer.Series.from_list(numbers, dtype: :s64)
      tensor = Ferrox.from_series(series)
      assert largest_binary() < 80_000
      assert Explorer.Series.to_iovec(series) == [Ferrox.to_binary(tensor)]

      pieces = Explorer.Series.concat(series, series)
      assert length(Explorer.Series.to_iovec(pieces)) == 2
      assert Ferrox.from_series(pieces) == Ferrox.tensor(numbers ++ numbers, type: :s64)
    end

    test "part of a series, and of a binary" do
      series = Explorer.Series.from_list(Enum.to_list(1..100), dtype: :s32)
      part = series |> Explorer.Series.slice(3, 50) |> Ferrox.from_series()
      assert part == Ferrox.tensor(Enum.to_list(4..53), type: :s32)

      # A part whose first byte lies at an odd address.
      <<_, unaligned::binary>> = <<0, Ferrox.to_binary(Ferrox.iota({1000}, type: :f64))::binary>>
      series = unaligned |> Ferrox.from_binary(:f64) |> Ferrox.to_series()
      assert Explorer.Series.to_list(series) == Enum.map(0..999, &(&1 * 1.0))
    end

    test "the tensor lives as long as it is used" do
      tensor =
        Ferrox.from_series(Explorer.Series.from_list(Enum.to_list(1..100_000), dtype: :s64))

      for _ <- 1..50 do
        Explorer.Series.from_list(Enum.to_list(1..10_000))
        :erlang.garbage_collect()
      end

      assert Ferrox.to_number(Ferrox.sum(tensor)) == 5_000_050_000
    end

    test "what can't be a tensor, or a series, says why" do
      for {list, opts, message} <- [
            {[1, nil, 3, nil], [], ~r/^from_series: 2 of 4 elements are nil.*fill_missing/},
            {[], [dtype: :s64], ~r/^from_series: the series is empty/},
            {["a"], [], ~r/^from_series: a series of strings has no numbers; .*:category/},
            {[[1], [2]], [], ~r/^from_series: no type of tensor has .* \{:list, \{:s, 64\}\}/},
            {[nil, nil], [], ~r/^from_series: no type of tensor has .* :null/}
          ] do
        series = Explorer.Series.from_list(list, opts)
        assert_raise ArgumentError, message, fn -> Ferrox.from_series(series) end
      end

      assert_raise ArgumentError, ~r/^to_series: a series has one axis, .* \{2, 2\}/, fn ->
        Ferrox.to_series(Ferrox.iota({2, 2}))
      end

      for type <- [:f16, :bf16, :c64, :u4, :f8] do
        assert_raise ArgumentError, ~r/^to_series: a series can't have the type #{type};/, fn ->
          Ferrox.to_series(Ferrox.tensor([1, 2], type: type))
        end
      end
    end

    # What guides/backend.md says of Nx.
    @tag :nx
    test "with Nx: a series is an argument of a compiled function, and is not copied" do
      series = Explorer.Series.from_list(Enum.to_list(1..1000), dtype: :f32)
      tensor = Explorer.Series.to_tensor(series, backend: Ferrox.Backend)
      assert largest_binary() < 4_000
      assert Explorer.Series.to_iovec(series) == [Nx.to_binary(tensor)]

      sum = Nx.Defn.jit(&Nx.sum/1, compiler: Ferrox)
      assert Nx.to_number(sum.(series)) == 500_500.0
    end
  end

  defp same?(a, b) do
    {a.dtype, Explorer.Series.to_list(a)} == {b.dtype, Explorer.Series.to_list(b)}
  end

  # The size of the largest binary that this process refers to. Explorer's binaries are a few bytes
  # that keep a series alive: a copy of the elements would be larger.
  defp largest_binary do
    # The code of modules that were just loaded.
    :erlang.garbage_collect()
    {:binary, binaries} = Process.info(self(), :binary)
    binaries |> Enum.map(&elem(&1, 1)) |> Enum.max()
  end
end
