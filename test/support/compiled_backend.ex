if Code.ensure_loaded?(Nx.Defn) do
  defmodule Ferrox.CompiledBackend do
    @moduledoc """
    A backend on which each operation is a function of its own, which `Ferrox` compiles.

    So what is written for one operation at a time, such as Nx's doctests, runs on the compiler. An
    operation without a native form raises, but for reductions with a function, of which those of types
    below a byte have none.
    """

    alias Ferrox.Backend

    @behaviour Nx.Backend
    defstruct [:state]

    @without_programs [
      :init,
      :from_binary,
      :from_pointer,
      :to_pointer,
      :to_binary,
      :to_batched,
      :inspect,
      :backend_copy,
      :backend_transfer,
      :backend_deallocate
    ]

    @impl true
    def init(opts), do: Backend.init(opts)

    @impl true
    def from_binary(out, binary, _opts), do: put(Backend.from_binary(out, binary, []))

    @impl true
    def from_pointer(pointer, type, shape, backend_opts, opts),
      do: Backend.from_pointer(pointer, type, shape, backend_opts, opts)

    @impl true
    def to_pointer(tensor, opts), do: Backend.to_pointer(tensor, opts)

    @impl true
    def to_binary(tensor, limit), do: Backend.to_binary(get(tensor), limit)

    @impl true
    def to_batched(out, tensor, opts),
      do: out |> Backend.to_batched(get(tensor), opts) |> Stream.map(&put/1)

    @impl true
    def inspect(tensor, opts), do: Backend.inspect(get(tensor), opts)

    @impl true
    def backend_copy(tensor, backend, _opts) when backend in [__MODULE__, Nx.Tensor], do: tensor
    def backend_copy(tensor, backend, opts), do: Backend.backend_copy(get(tensor), backend, opts)

    @impl true
    def backend_transfer(tensor, backend, opts), do: backend_copy(tensor, backend, opts)

    @impl true
    def backend_deallocate(_tensor), do: :ok

    for {name, arity} <- Nx.Backend.behaviour_info(:callbacks), name not in @without_programs do
      args = Macro.generate_arguments(arity, __MODULE__)

      # Nx asks for these only if they are there, and else computes them from others.
      if {name, arity} not in Nx.Backend.behaviour_info(:optional_callbacks) do
        @impl true
        def unquote(name)(unquote_splicing(args)), do: run(unquote(name), unquote(args))
      end
    end

    # The operation as a function of the tensors among its arguments.
    defp run(name, args) do
      case args |> tensors(name) |> Enum.map(&get/1) do
        [] ->
          fn -> apply(Nx.Defn.Expr, name, args) end |> compiled([], :raise)

        tensors ->
          fallback = if name in [:reduce, :window_reduce], do: :evaluator, else: :raise

          fn tensors -> apply(Nx.Defn.Expr, name, fill(args, name, tensors)) end
          |> compiled([List.to_tuple(tensors)], fallback)
      end
    end

    defp compiled(fun, tensors, fallback),
      do: fun |> Nx.Defn.jit_apply(tensors, compiler: Ferrox, fallback: fallback) |> put()

    # The first argument, the result's type and shape, is no operand. Of a block, it is the second.
    defp operands(name, args), do: Enum.split(args, if(name == :block, do: 2, else: 1))

    defp tensors(args, name) do
      {_outs, operands} = operands(name, args)
      operands |> List.flatten() |> Enum.filter(&is_struct(&1, Nx.Tensor))
    end

    # The arguments, with other tensors.
    defp fill(args, name, tensors) do
      {outs, operands} = operands(name, args)
      {operands, []} = Enum.map_reduce(operands, Tuple.to_list(tensors), &fill_one/2)
      outs ++ operands
    end

    defp fill_one(%Nx.Tensor{}, [tensor | tensors]), do: {tensor, tensors}
    defp fill_one([_ | _] = list, tensors), do: Enum.map_reduce(list, tensors, &fill_one/2)
    defp fill_one(other, tensors), do: {other, tensors}

    defp get(%{data: %__MODULE__{state: state}} = tensor),
      do: %{tensor | data: %Backend{state: state}}

    defp get(tensor), do: Nx.backend_copy(tensor, Backend)

    defp put(%Nx.Tensor{data: %Backend{state: state}} = tensor),
      do: %{tensor | data: %__MODULE__{state: state}}

    defp put(tuple) when is_tuple(tuple),
      do: tuple |> Tuple.to_list() |> Enum.map(&put/1) |> List.to_tuple()
  end
end
