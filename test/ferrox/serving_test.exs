examples = Path.expand("../../examples", __DIR__)
Code.require_file("serving/nodes.ex", examples)

if Code.ensure_loaded?(Nx) do
  for file <- ~w(digits/data digits/nx_classifier serving/reader serving/requests),
      do: Code.require_file(file <> ".ex", examples)
end

defmodule Ferrox.ServingCommandTest do
  # What bin/serve-demo says of mistakes.
  use ExUnit.Case, async: false

  import ExUnit.CaptureIO

  @script Path.expand("../../examples/serving.exs", __DIR__)

  # What the script prints to stderr and its exit status.
  defp run(arguments) do
    before = System.argv()
    System.argv(arguments)

    try do
      with_io(:stderr, fn -> catch_exit(Code.eval_file(@script)) end)
    after
      System.argv(before)
    end
  end

  test "help names the options" do
    output = capture_io(fn -> assert {{:shutdown, 0}, ""} = run(["--help"]) end)
    for option <- ["--seconds", "--port"], do: assert(output =~ option)
    assert output |> String.split("\n") |> Enum.all?(&(String.length(&1) <= 90))
  end

  test "mistakes are one line, which says what is possible" do
    for {arguments, line} <- [
          {["--sceonds", "3"], "--sceonds is not understood; there are --seconds S, --port N"},
          {["--seconds", "x"], "--seconds x is not understood"},
          {["--seconds", "0"], "--seconds takes a number from 0.1 to 3600"},
          {["now"], "now is not understood"},
          {["--port", "70000"], "--port takes a number from 1 to 65533"}
        ] do
      assert {{:shutdown, 1}, output} = run(arguments)
      assert output =~ "serve-demo: " <> line
      assert output |> String.split("\n") |> length() == 2
    end
  end

  if not Code.ensure_loaded?(Nx) do
    test "without Nx it says so" do
      assert {{:shutdown, 1}, output} = run([])
      assert output =~ "serve-demo: Nx is missing"
    end
  end
end

if Code.ensure_loaded?(Nx) do
  defmodule Ferrox.ServingTest do
    # The example of a model that several nodes serve.
    use ExUnit.Case, async: false

    alias Digits.{Data, Nodes, NxClassifier, Reader, Requests}
    alias Ferrox.Guide

    @moduletag :nx
    # The VM warns of requests to a node that has gone away.
    @moduletag :capture_log

    with {:error, reason} <- Nodes.ensure_epmd(), do: @moduletag(skip: reason)

    setup_all do
      unique = Base.encode16(:crypto.strong_rand_bytes(4), case: :lower)
      :ok = Nodes.start_this("ferrox_test_#{unique}")
      on_exit(&Nodes.stop_this/0)

      {training, held_out} = Enum.split(Data.load(), 1440)

      batches =
        for {images, labels} <- Data.batches(training, 32),
            do: {Ferrox.to_nx(images), Ferrox.to_nx(labels)}

      Nx.default_backend(Ferrox.Backend)
      Nx.Defn.default_options(compiler: Ferrox)
      params = NxClassifier.train(batches, 5, 0.5)
      Nx.Defn.default_options([])

      {images, labels} = Enum.unzip(held_out)
      {node, digits} = Nx.Serving.run(Reader.serving(params, 32), images)
      assert node == node()
      digits = Nx.to_flat_list(digits)
      right = Enum.count(Enum.zip(digits, labels), fn {read, is} -> read == is end)
      assert right / length(labels) > 0.93

      context = %{unique: unique, params: params, pictures: Enum.zip(images, digits)}
      assert Reader.read([hd(images)]) == {:error, :noproc}
      Map.put(context, :server, start("a", context))
    end

    # Starts a node that serves.
    defp start(name, %{unique: unique, params: params}) do
      {:ok, node, peer} = Nodes.start("ferrox_#{name}_#{unique}", [:ferrox, :nx])
      on_exit(fn -> Nodes.stop(peer) end)

      for file <- ~w(digits/nx_classifier.ex serving/reader.ex) do
        path = Path.expand("../../examples/#{file}", __DIR__)
        :erpc.call(node, Code, :require_file, [path])
      end

      :erpc.call(node, Reader, :start, [params, 8])
      node
    end

    # Asks until each of these nodes, and no other one, has answered of late.
    defp await(pictures, nodes, tries \\ 50) do
      outcomes = for {_, _, outcome} <- Requests.run(pictures, 4, 0.05), uniq: true, do: outcome

      if Enum.sort(outcomes) != Enum.sort(nodes) do
        assert tries > 0, "expected answers of #{inspect(nodes)}, got: #{inspect(outcomes)}"
        await(pictures, nodes, tries - 1)
      end
    end

    test "two nodes answer as this one does, and one goes on when the other is killed", context do
      %{pictures: pictures, server: first} = context
      second = start("b", context)
      await(pictures, [first, second])

      # Several pictures a request, more than a batch has.
      {images, digits} = pictures |> Enum.take(20) |> Enum.unzip()
      assert {:ok, {_, %{data: %Nx.BinaryBackend{}} = tensor}} = Reader.read(images)
      assert Nx.to_flat_list(tensor) == digits

      load = Task.async(fn -> Requests.run(pictures, 16, 0.5) end)
      Process.sleep(200)
      :ok = Nodes.kill(second)
      requests = Task.await(load, :infinity)

      outcomes = Enum.frequencies_by(requests, fn {_, _, outcome} -> outcome end)
      assert Map.keys(outcomes) -- [first, second, {:error, :noconnection}] == []
      assert outcomes[first] > 0 and outcomes[second] > 0

      # A process that is told of it at once may send another request before it is known everywhere.
      assert Map.get(outcomes, {:error, :noconnection}, 0) <= 4 * 16
      await(pictures, [first])
    end

    test "a node without Ferrox can ask, and use the answer", context do
      %{pictures: [{pixels, digit} | _], unique: unique, server: server} = context

      without_ferrox =
        for path <- :code.get_path(),
            not File.exists?(Path.join(path, "Elixir.Ferrox.beam")),
            do: path

      {:ok, client, peer} = Nodes.start("ferrox_c_#{unique}", [:nx], paths: without_ferrox)
      on_exit(fn -> Nodes.stop(peer) end)
      refute :erpc.call(client, Code, :ensure_loaded?, [Ferrox.Backend])

      true = :erpc.call(client, :net_kernel, :connect_node, [server])
      {^server, tensor} = ask(client, [pixels], 50)
      assert :erpc.call(client, Nx, :to_flat_list, [tensor]) == [digit]
      assert :erpc.call(client, Kernel, :inspect, [tensor]) =~ "#{digit}"
    end

    test "the code of the guide serves, connects nodes, and asks again", %{server: server} do
      [module, child, partitions, nodes, retry, timeout] = Guide.blocks("guides/serving.md")

      Guide.run(module)
      params = {Nx.iota({64, 3}, type: :f32), Nx.tensor([1.0, 2.0, 3.0])}
      x = Nx.broadcast(Nx.tensor(-1.0e-3), {64})
      batch = Nx.Batch.stack([x])
      expected = apply(MyApp.Model, :predict, [params, Nx.stack([x])])
      right? = &(Nx.to_number(Nx.all_close(&1, expected)) == 1)

      [children, request] = String.split(child, "# In any process", parts: 2)
      [served] = Guide.run(children, params: params)
      start_supervised!(served, id: :served)
      assert right?.(Guide.run("#" <> request, x: x))

      # The nodes of the guide aren't there, another one is.
      addresses = ~s([:"app@10.0.0.1", :"app@10.0.0.2"])
      assert nodes =~ addresses
      assert right?.(nodes |> String.replace(addresses, "[:\"#{server}\"]") |> Guide.run(x: x))

      Guide.run("""
      defmodule MyApp.Ask do
        #{retry}
        def predict_in_time(batch) do
          #{timeout}
        end
      end
      """)

      assert right?.(apply(MyApp.Ask, :predict, [batch]))
      assert {:ok, answer} = apply(MyApp.Ask, :predict_in_time, [batch])
      assert right?.(answer)
      stop_supervised!(:served)

      # Nobody serves, until somebody does.
      assert {:noproc, _} = catch_exit(apply(MyApp.Ask, :predict, [batch]))
      later = Task.async(fn -> apply(MyApp.Ask, :predict, [batch, 100]) end)
      Process.sleep(100)

      fun = fn options ->
        predict = Nx.Defn.jit(&apply(MyApp.Model, :predict, [params, &1]), options)
        fn batch -> predict.(batch) end
      end

      start_supervised!(Guide.run(partitions, fun: fun), id: :partitions)
      assert right?.(Task.await(later))
      asked = for _ <- 1..20, do: Task.async(fn -> apply(MyApp.Ask, :predict, [batch]) end)
      assert asked |> Task.await_many() |> Enum.all?(right?)
    end

    # A node doesn't know the servings of others at once.
    defp ask(client, pictures, tries) do
      :erpc.call(client, Nx.Serving, :batched_run, [Reader, pictures])
    catch
      :exit, _reason when tries > 0 ->
        Process.sleep(20)
        ask(client, pictures, tries - 1)
    end
  end
end
