examples = Path.expand("../../examples", __DIR__)
Code.require_file("serving/nodes.ex", examples)

defmodule Ferrox.NodesTest do
  # Tensors, and what computes with them, on two nodes.
  use ExUnit.Case, async: false

  alias Digits.Nodes

  with {:error, reason} <- Nodes.ensure_epmd(), do: @moduletag(skip: reason)

  @types [:u2, :s2, :u4, :s4, :u8, :s64, :f8, :f8_e4m3fn, :f16, :bf16, :f32, :f64, :c64, :c128]

  setup_all do
    unique = Base.encode16(:crypto.strong_rand_bytes(4), case: :lower)
    :ok = Nodes.start_this("ferrox_test_#{unique}")
    {:ok, node, peer} = Nodes.start("ferrox_peer_#{unique}", [:ferrox])

    on_exit(fn ->
      Nodes.stop(peer)
      Nodes.stop_this()
    end)

    %{node: node, unique: unique}
  end

  # What the node has been sent, as it comes back.
  defp echo(node, term), do: :erpc.call(node, :lists, :last, [[term]])

  # The bytes that the node keeps for data that it has been sent.
  defp kept(node, data), do: :erpc.call(node, :binary, :referenced_byte_size, [data])

  describe "tensors of the direct API" do
    test "arrive equal, of every type", %{node: node} do
      for type <- @types ++ [:bool] do
        tensor = Ferrox.as_type(Ferrox.tensor([[0, 1, 1], [1, 0, 1]]), type)
        assert echo(node, tensor) == tensor
        assert :erpc.call(node, Ferrox, :to_list, [tensor]) == Ferrox.to_list(tensor)
      end
    end

    test "below a byte, of any number of elements", %{node: node} do
      for type <- [:u2, :s4], size <- 1..9 do
        tensor = Ferrox.iota({size}, type: type)
        assert echo(node, tensor) == tensor
        assert :erpc.call(node, Ferrox, :add, [tensor, tensor]) == Ferrox.add(tensor, tensor)
      end
    end

    test "large ones, and scalars, weak ones and infinities", %{node: node} do
      for tensor <- [
            Ferrox.iota({3000, 1001}, type: :f32),
            Ferrox.iota({1_000_003}, type: :u4),
            Ferrox.tensor(1.5),
            Ferrox.tensor(2, promotion: :jax),
            Ferrox.tensor([:nan, :infinity, :neg_infinity])
          ] do
        assert echo(node, tensor) == tensor
        assert :erpc.call(node, Ferrox, :sum, [tensor]) == Ferrox.sum(tensor)
      end
    end

    test "are computed with there and here to the same bits", %{node: node} do
      tensor = Ferrox.sin(Ferrox.iota({100, 100}, type: :f32))
      there = :erpc.call(node, Ferrox, :dot, [tensor, tensor])
      assert Ferrox.to_binary(there) == Ferrox.to_binary(Ferrox.dot(tensor, tensor))
    end
  end

  test "a part of a large binary is sent without the rest", %{node: node} do
    parent = :binary.copy(<<1>>, 10_000_000)
    part = binary_part(parent, 5, 80_000)
    <<_::3, bits::bitstring-size(640_001), _::bitstring>> = parent

    for data <- [part, bits] do
      assert :binary.referenced_byte_size(data) > 80_000
      assert byte_size(:erlang.term_to_binary(data)) < 81_000
      assert kept(node, data) < 160_000
      assert echo(node, data) == data
    end

    tensor = Ferrox.from_binary(part, :f32)
    assert kept(node, Ferrox.to_binary(tensor)) < 160_000
  end

  test "a node that is killed is gone, with what it was asked for", %{unique: unique} do
    {:ok, node, peer} = Nodes.start("ferrox_killed_#{unique}", [:ferrox])
    monitor = Process.monitor(peer)
    waiting = Task.async(fn -> catch_error(:erpc.call(node, Process, :sleep, [:infinity])) end)

    assert :ok == Nodes.kill(node)
    refute node in Node.list()
    assert {:erpc, :noconnection} = Task.await(waiting)
    assert_receive {:DOWN, ^monitor, :process, ^peer, _reason}, 5_000
    assert :ok == Nodes.stop(peer)
  end

  describe "mistakes" do
    test "a port in use is named", %{unique: unique} do
      {:ok, socket} = :gen_tcp.listen(0, ip: {127, 0, 0, 1})
      {:ok, port} = :inet.port(socket)
      line = "port #{port} is in use: choose another one"
      assert Nodes.start("ferrox_other_#{unique}", [], port: port) == {:error, line}
      :gen_tcp.close(socket)
    end

    test "a name in use is named", %{node: node} do
      [name, _host] = node |> Atom.to_string() |> String.split("@")
      line = "#{node} can't be started: its name is in use, or no port is free"
      assert Nodes.start(name, []) == {:error, line}
    end
  end

  if Code.ensure_loaded?(Nx) do
    describe "with Nx" do
      @describetag :nx

      setup %{node: node} do
        {:ok, _} = :erpc.call(node, :application, :ensure_all_started, [:nx])
        :ok
      end

      test "tensors arrive equal, of every type", %{node: node} do
        # Nx before 0.11 has no f8_e4m3fn.
        for type <- @types -- [:f8_e4m3fn] do
          tensor = Nx.tensor([[0, 1, 1], [1, 0, 1]], type: type, backend: Ferrox.Backend)
          assert echo(node, tensor) == tensor
          assert :erpc.call(node, Nx, :to_flat_list, [tensor]) == Nx.to_flat_list(tensor)
          assert :erpc.call(node, Nx, :add, [tensor, tensor]) == Nx.add(tensor, tensor)
        end
      end

      test "slices and batches of a large tensor are sent without the rest", %{node: node} do
        tensor = Nx.iota({1000, 1000}, type: :f32, backend: Ferrox.Backend)

        for part <- [tensor[3..12], tensor |> Nx.to_batched(10) |> Enum.at(2)] do
          assert byte_size(:erlang.term_to_binary(part)) < 41_000
          assert kept(node, part.data.state) < 80_000
          assert echo(node, part) == part
        end
      end

      test "a function that is compiled here says so there", %{node: node} do
        template = Nx.template({2}, :f32)
        add = Nx.Defn.compile(&Nx.add/2, [template, template], compiler: Ferrox)
        tensor = Nx.tensor([1.0, 2.0])
        assert Nx.to_list(add.(tensor, tensor)) == [2.0, 4.0]

        message =
          "this function has been compiled on the node #{node()}, and its program is only " <>
            "there; compile it on #{node}"

        assert_raise ArgumentError, message, fn ->
          try do
            :erpc.call(node, :erlang, :apply, [add, [tensor, tensor]])
          rescue
            error in ErlangError ->
              {:exception, exception, _} = error.original
              raise exception
          end
        end

        assert :erpc.call(node, Nx.Defn, :jit_apply, [
                 &Nx.add/2,
                 [tensor, tensor],
                 [compiler: Ferrox]
               ]) ==
                 add.(tensor, tensor)
      end
    end
  end
end
