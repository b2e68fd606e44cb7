defmodule Ferrox.BackendFixturesTest do
  # The callbacks of Ferrox.Backend against results recorded from the real Nx, so
  # that they are tested where there is none. test/fixtures/record.exs records them.
  use ExUnit.Case, async: true

  import Ferrox.Bits, only: [bound_size: 1]

  alias Ferrox.{Backend, Fixtures, Oracle}

  @files ["binary.txt", "unary.txt", "reduce.txt", "shape.txt", "indexed.txt", "sort.txt"] ++
           ["window.txt", "conv.txt", "functions.txt", "blocks.txt", "folds.txt"] ++
           ["fourier.txt", "linalg.txt", "factors.txt"]
  @versions ["0.9.2", "0.13.1"]

  # Their results come from the system's libm, which isn't the same everywhere.
  @transcendental [:exp, :expm1, :log, :log1p, :sigmoid, :sin, :cos, :tan, :tanh] ++
                    [:rsqrt, :pow, :atan2, :asin, :acos, :atan, :sinh, :cosh, :asinh, :acosh] ++
                    [:atanh, :cbrt, :erf, :erfc, :erf_inv, :block]

  # Covered by the tests below, or by backend_test.exs where there is an Nx.
  @by_hand [:init, :inspect, :backend_copy, :backend_transfer, :backend_deallocate] ++
             [:from_pointer, :to_pointer]

  # Optional callbacks that are tested as the blocks that they have become.
  @as_blocks [:logical_not, :phase, :all_close, :fft2, :ifft2, :eigh] ++
               [:cumulative_sum, :cumulative_product, :cumulative_min, :cumulative_max]

  # The data are in the byte order of the machine that recorded them.
  @moduletag skip: System.endianness() == :big and "recorded on a little-endian machine"

  calls = for file <- @files, do: {file, Fixtures.read(file)}

  @recorded for {_, terms} <- calls,
                {name, args, _} <- terms,
                uniq: true,
                do: {name, length(args)}

  @blocks for {_, terms} <- calls,
              {:block, [struct | _], _} <- terms,
              uniq: true,
              do: elem(struct, 1)

  for {file, terms} <- calls, {name, _} <- Enum.group_by(terms, &elem(&1, 0)) do
    test "#{file}: #{name}" do
      wrong =
        for {unquote(name), args, expected} = call <- Fixtures.read(unquote(file)),
            got = outcome(unquote(name), args),
            not if(unquote(file == "factors.txt"),
              do: Fixtures.near?(unquote(name), got, expected),
              else: agree?(unquote(name), got, expected)
            ),
            do:
              "#{inspect(call, limit: :infinity, printable_limit: :infinity)}\ngave #{inspect(got)}"

      assert wrong == [],
             "#{length(wrong)} calls differ\n" <> Enum.join(Enum.take(wrong, 5), "\n")
    end
  end

  defp outcome(name, args) do
    {:ok, Backend |> apply(name, Fixtures.load(args)) |> Fixtures.dump()}
  rescue
    _ in ArgumentError -> {:raises, :argument_error}
  end

  defp agree?(_, same, same), do: true

  defp agree?(name, {:ok, value}, {:differs, _, expected}),
    do: agree?(name, {:ok, value}, {:ok, expected})

  # Any NaN for any NaN.
  defp agree?(
         name,
         {:ok, {:tensor, type, shape, _} = got},
         {:ok, {:tensor, type, shape, _} = expected}
       ) do
    margin =
      case type do
        {:c, _} when name in @transcendental -> 4
        _ when name in @transcendental -> 1
        _ -> 0
      end

    Enum.zip(elements(got), elements(expected))
    |> Enum.all?(fn {got, expected} ->
      Oracle.same?(got, expected, type) or
        (margin > 0 and Oracle.ulps(got, expected, type) <= margin)
    end)
  end

  defp agree?(_, _, _), do: false

  defp elements({:tensor, {_, bits}, _, _} = tensor) do
    for <<element::bitstring-bound_size(bits) <- Fixtures.load(tensor).data.state>>, do: element
  end

  test "logical_not, a block of 0.13 and an optional callback of 0.9" do
    calls = for {:block, args, expected} <- Fixtures.read("unary.txt"), do: {args, expected}
    assert calls != []

    for {[{:struct, Nx.Block.LogicalNot}, out, [tensor], :fun], expected} <- calls do
      assert agree?(:logical_not, outcome(:logical_not, [out, tensor]), expected)
    end
  end

  test "blocks of 0.13 that are optional callbacks of 0.9" do
    calls =
      for {:block, [{:struct, module, fields}, out, operands, :fun], expected} <-
            Fixtures.read("blocks.txt"),
          do: {module, [out | operands] ++ [fields], expected}

    assert calls != []

    for {module, args, expected} <- calls do
      op = module |> Module.split() |> List.last() |> Macro.underscore() |> String.to_atom()
      assert agree?(:block, outcome(op, args), expected)
    end

    for {:block, [{:struct, Nx.Block.Phase}, out, [tensor], :fun], expected} <-
          Fixtures.read("blocks.txt"),
        do: assert(agree?(:block, outcome(:phase, [out, tensor]), expected))
  end

  test "pointers are refused with the reason" do
    tensor = %{type: {:u, 8}, shape: {1}, names: [nil], data: %Backend{state: <<1>>}}

    for call <- [
          fn -> Backend.to_pointer(tensor, kind: :local) end,
          fn -> Backend.from_pointer(%{address: 1}, {:u, 8}, {1}, [], names: [nil]) end
        ] do
      assert_raise ArgumentError,
                   ~r/^Ferrox.Backend has no pointers: the data .* no address/,
                   call
    end
  end

  for version <- @versions do
    test "every required callback of Nx #{version} is there, and recorded or refused by its name" do
      for {name, arity} <- Fixtures.read(Fixtures.callbacks_file(unquote(version))) do
        assert function_exported?(Backend, name, arity), "#{name}/#{arity} is missing"
        check(name, arity)
      end
    end
  end

  for version <- @versions do
    test "every optional callback and block of Nx #{version} is recorded, or by its name above" do
      missing =
        for term <- Fixtures.read(Fixtures.optional_file(unquote(version))), not covered?(term) do
          term
        end

      assert missing == []
    end
  end

  # A block without a version of its own is a fun of others.
  defp covered?({:optional, 3}), do: true
  defp covered?({:block, module}) when is_atom(module), do: module in @blocks

  defp covered?({name, arity}) do
    function_exported?(Backend, name, arity) and
      ({name, arity} in @recorded or name in @as_blocks)
  end

  if Code.ensure_loaded?(Nx) do
    @tag :nx
    test "every required callback of this Nx is there, and the list of it is the recorded one" do
      optional = Nx.Backend.behaviour_info(:optional_callbacks)
      callbacks = Enum.sort(Nx.Backend.behaviour_info(:callbacks) -- optional)
      version = "#{Application.spec(:nx, :vsn)}"
      for {name, arity} <- callbacks, do: assert(function_exported?(Backend, name, arity))

      if version in @versions,
        do: assert(callbacks == Fixtures.read(Fixtures.callbacks_file(version)))
    end
  end

  defp check(name, arity) do
    unless {name, arity} in @recorded or name in @by_hand do
      error =
        assert_raise RuntimeError, fn ->
          apply(Backend, name, List.duplicate(nil, arity))
        end

      assert error.message == "Ferrox.Backend does not support Nx.Backend.#{name}/#{arity} yet"
    end
  end

  describe "transfers, without Nx" do
    defmodule Elsewhere do
      def from_binary(tensor, binary, opts), do: %{tensor | data: {:elsewhere, binary, opts}}
    end

    setup do
      data = %Backend{state: :binary.copy(<<1, 0, 0, 0>>, 100)}
      %{tensor: %{type: {:s, 32}, shape: {100}, names: [nil], data: data}}
    end

    test "to the backend itself and to nowhere they give the tensor", %{tensor: tensor} do
      for to <- [Backend, Nx.Tensor], fun <- [:backend_copy, :backend_transfer] do
        assert apply(Backend, fun, [tensor, to, []]) == tensor
      end
    end

    test "to another backend they hand it the same binary", %{tensor: tensor} do
      for fun <- [:backend_copy, :backend_transfer] do
        assert %{data: {:elsewhere, binary, [option: 1]}} =
                 apply(Backend, fun, [tensor, Elsewhere, [option: 1]])

        assert :erts_debug.same(binary, tensor.data.state)
      end
    end

    test "deallocation is harmless, as often as it is done", %{tensor: tensor} do
      assert Backend.backend_deallocate(tensor) == :ok
      assert Backend.backend_deallocate(tensor) == :ok
      assert Backend.to_binary(tensor, 1) == <<1, 0, 0, 0>>
    end

    test "the backend takes no options" do
      assert Backend.init([]) == []

      assert_raise ArgumentError, "Ferrox.Backend takes no options, got: [device: 1]", fn ->
        Backend.init(device: 1)
      end
    end
  end
end
