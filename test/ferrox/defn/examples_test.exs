if Code.ensure_loaded?(Nx.Defn) do
  defmodule Ferrox.Defn.ExamplesTest do
    # The examples in the documentation of the compiler, and in guides/compiler.md.
    use ExUnit.Case, async: false

    alias Ferrox.Guide

    @moduletag :nx

    # What examples print is compared below.
    setup do
      Nx.default_backend(Ferrox.Backend)
      {:ok, printed} = StringIO.open("")
      Process.group_leader(self(), printed)
      :ok
    end

    doctest Ferrox.Defn
    doctest Ferrox.Defn.Cache
    doctest Ferrox.Defn.Expression

    test "explain/2 prints what its documentation says" do
      {:docs_v1, _, _, _, _, _, docs} = Code.fetch_docs(Ferrox.Defn)
      {_, _, _, %{"en" => text}, _} = List.keyfind(docs, {:function, :explain, 3}, 0)
      [example, printed] = String.split(text, "\n\nThis prints\n\n")
      [printed, _] = String.split(printed, "\n\n## Options")
      assert Guide.printed(example) == unindent(printed)
    end

    # Axon tells what it does.
    @tag :capture_log
    test "the code of the guide runs, and gives what it says" do
      [module, norm, config, defaults, calls, axon, scholar, serving, softmax | others] =
        Guide.blocks("guides/compiler.md")

      [fast, cache, rates, events] = others

      Guide.run(module)

      for example <- [norm, softmax],
          do: assert(Guide.printed(example) == Guide.expected(example))

      assert Guide.settings(config) == [
               nx: [default_backend: Ferrox.Backend, default_defn_options: [compiler: Ferrox]]
             ]

      assert [ferrox: [compiler_cache_size: 1_000, compiler_cache_bytes: 1_073_741_824]] =
               Guide.settings(cache)

      with_defaults(fn ->
        Guide.run(defaults)
        assert Nx.default_backend() == {Ferrox.Backend, []}
        assert Nx.Defn.default_options() == [compiler: Ferrox]
        Guide.run(fast)
        assert Nx.Defn.global_default_options([]) == [compiler: Ferrox, math: :fast]
      end)

      x = Nx.iota({784}, type: :f32)
      y = Nx.add(x, 2)
      assert calls |> Guide.run(x: x, y: y) |> Nx.to_number() == 56.0
      gradient = Nx.tensor([1.0, 2.0])
      rated = Guide.run(rates, w: Nx.tensor([1.0, 1.0]), g: gradient, rate: 0.5)
      assert Nx.to_list(rated) == [0.5, 0.0]
      served(serving)

      if Code.ensure_loaded?(Axon), do: trained(axon)

      if Code.ensure_loaded?(Scholar.Cluster.KMeans) do
        points = Nx.tensor([[0.0], [0.1], [5.0], [5.1], [9.0], [9.1]])
        fitted = Guide.run(scholar, x: points)

        assert fitted.clusters |> Nx.to_flat_list() |> Enum.map(&round/1) |> Enum.sort() == [
                 0,
                 5,
                 9
               ]
      end

      [{logger, _}] = Code.compile_string(events)
      on_exit(fn -> :telemetry.detach("compilations") end)
      log = ExUnit.CaptureLog.capture_log(fn -> compilations(logger) end)
      assert log =~ ~r/compiled: #Function<.*>, in \d+ us/
      assert log =~ ~r/not compiled: #Function<.*>, \*\* \(RuntimeError\) no/
      assert log =~ ~r/evaluated: #Function<.*>, .*u, 4/
    end

    # What is set for all processes is what it was before.
    defp with_defaults(fun) do
      backend = Nx.global_default_backend(Ferrox.Backend)
      options = Nx.Defn.global_default_options([])

      try do
        fun.()
      after
        Nx.global_default_backend(backend)
        Nx.Defn.global_default_options(options)
        Nx.Defn.default_options([])
      end
    end

    # The last of it is for those who have Bumblebee.
    defp served(block) do
      [serving, block] = String.split(block, "# In a supervision tree", parts: 2)
      [children, requests] = String.split(block, ~r/^(?=Nx.Serving.batched_run)/m, parts: 2)
      [request, _bumblebee] = String.split(requests, "\n\n", parts: 2)
      x = Nx.tensor([1.0, 2.0])
      gelu = apply(MyModule, :gelu, [Nx.stack([x, x])])

      [once, jitted] = String.split(serving, "# The same for a function of the batch.")
      assert Guide.run(once, x: x, y: x) == gelu
      [child] = Guide.run(jitted <> "#" <> children)
      start_supervised!(child)
      assert Guide.run(request, x: x, y: x) == gelu
    end

    defp trained(block) do
      x = Nx.iota({4, 4}, type: :f32)
      batches = [{x, Nx.broadcast(1.0, {4, 2})}]

      ExUnit.CaptureIO.capture_io(:stderr, fn ->
        assert Guide.run(block, batches: batches, input: x).shape == {4, 2}
      end)
    end

    defp compilations(logger) do
      logger.attach()
      run = fn fun, x -> Nx.Defn.jit_apply(fun, [x], compiler: Ferrox) end
      run.(fn x -> Nx.add(x, 41) end, 1)
      assert_raise RuntimeError, fn -> run.(fn _x -> raise "no" end, 1) end
      sum = fn x -> Nx.reduce(x, Nx.tensor(0, type: :u4), &Nx.add/2) end
      run.(sum, Nx.tensor([1, 2], type: :u4))
    end

    defp unindent(text), do: text |> String.replace(~r/^    /m, "") |> String.trim()
  end
end
