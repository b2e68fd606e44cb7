# Serves the classifier of handwritten digits on two nodes of this machine, and asks
# them from a third, which is this one. `bin/serve-demo` runs this file, which only
# reports; the work is in
#
#   serving/reader.ex      the model behind Nx.Serving
#   serving/nodes.ex       nodes of this machine, started, stopped and killed
#   serving/requests.ex    requests of many processes at once
#   digits/                the pictures and the model, as in digits.exs
#   command.ex             options

Code.require_file("command.ex", __DIR__)

%{seconds: seconds, port: port} =
  Command.options!(
    "serve-demo",
    "Serves a classifier of handwritten digits on two nodes of this machine, and asks them\n" <>
      "from a third: times, and what happens when a node is killed.",
    seconds:
      {:float, "S", 1.0, {0.1, 3600},
       "how long each row of the table is measured; 1 if not given"},
    port:
      {:integer, "N", nil, {1, 65_533},
       "the nodes listen on ports N, N + 1 and N + 2; if not given, on any"}
  )

fail! = &Command.fail!("serve-demo", &1)

if not Code.ensure_loaded?(Nx) do
  fail!.("Nx is missing: it is fetched where Hex can be reached, or found in ERL_LIBS")
end

files =
  for file <- ~w(digits/data digits/nx_classifier serving/reader serving/nodes serving/requests),
      do: Path.join(__DIR__, file <> ".ex")

Enum.each(files, &Code.require_file/1)

alias Digits.{Data, Nodes, NxClassifier, Reader, Requests}

ok! = fn
  :ok -> :ok
  {:ok, first, second} -> {first, second}
  {:error, line} -> fail!.(line)
end

decimals = &Command.decimals/2
milliseconds = fn microseconds -> decimals.(microseconds / 1000, 1) <> " ms" end
right = fn text, width -> String.pad_leading("#{text}", width) end

thousands = fn integer ->
  "#{round(integer)}"
  |> String.reverse()
  |> String.replace(~r/\d{3}(?=\d)/, "\\0,")
  |> String.reverse()
end

# The model, trained here. The nodes are sent its parameters.
{training, held_out} = Enum.split(Data.load(), 1440)
to_nx = fn {images, labels} -> {Ferrox.to_nx(images), Ferrox.to_nx(labels)} end
Nx.default_backend(Ferrox.Backend)
Nx.Defn.default_options(compiler: Ferrox)
params = training |> Data.batches(32) |> Enum.map(to_nx) |> NxClassifier.train(30, 0.5)

# What it reads here, without other nodes.
{images, labels} = Enum.unzip(held_out)
{_this_node, digits} = Nx.Serving.run(Reader.serving(params, 64), images)
digits = Nx.to_flat_list(digits)
accuracy = Enum.count(Enum.zip(digits, labels), fn {read, is} -> read == is end) / length(labels)

if accuracy < 0.93 do
  fail!.("this model reads 95% or so, but now #{decimals.(accuracy * 100, 1)}%: Ferrox is broken")
end

pictures = Enum.zip(images, digits)

# Names that no other run has.
unique = 3 |> :crypto.strong_rand_bytes() |> Base.encode16(case: :lower)

# When a node has gone away, the VM warns of each request that it was sent before that
# was noticed.
Logger.configure(level: :error)
ok!.(Nodes.start_this("ferrox_c_#{unique}", port))

peers =
  for {name, index} <- [{"ferrox_a", 1}, {"ferrox_b", 2}] do
    {node, peer} =
      ok!.(Nodes.start("#{name}_#{unique}", [:ferrox, :nx], port: port && port + index))

    Enum.each(files, &:erpc.call(node, Code, :require_file, [&1]))
    {node, peer}
  end

nodes = [first, second] = Keyword.keys(peers)

IO.puts("""
A classifier of handwritten digits behind Nx.Serving (Nx #{Application.spec(:nx, :vsn)}), compiled
by Ferrox. On this node it reads #{decimals.(accuracy * 100, 1)}% of #{length(labels)} digits held out correctly.

Three nodes on this machine, which has #{System.schedulers_online()} cores:

  #{first}   serves
  #{second}   serves
  #{node()}   asks
""")

on! = fn node, module, function, arguments ->
  try do
    :erpc.call(node, module, function, arguments)
  catch
    :error, {:erpc, _} -> fail!.("#{node} has gone away")
  end
end

# Every request must be answered, and rightly.
check! = fn requests ->
  case Enum.find(requests, fn {_, _, outcome} -> outcome == :wrong or is_tuple(outcome) end) do
    nil ->
      requests

    {_, _, :wrong} ->
      fail!.("a node has read a digit otherwise than this one: Ferrox is broken")

    {_, _, {:error, reason}} ->
      fail!.("a node has gone away, or serves no longer: #{inspect(reason)}")
  end
end

serve! = fn nodes, batch_size ->
  for node <- nodes, do: {node, on!.(node, Reader, :start, [params, batch_size])}
end

stop! = fn servings ->
  for {node, supervisor} <- servings, do: on!.(node, Supervisor, :stop, [supervisor])
end

# How many requests are under way at once.
processes = 64

IO.puts("""
Requests of one digit each, #{processes} at a time, all read as on this node:

  nodes   batch size   requests/s   median   99 of 100 within\
""")

for count <- [1, 2], batch_size <- [1, 8, 32] do
  servings = nodes |> Enum.take(count) |> serve!.(batch_size)
  # Until every node is known here, and warm.
  Requests.run(pictures, processes, 0.2)
  requests = pictures |> Requests.run(processes, seconds) |> check!.()
  stop!.(servings)

  IO.puts(
    right.(count, 7) <>
      right.(batch_size, 13) <>
      right.(thousands.(length(requests) / seconds), 13) <>
      right.(milliseconds.(Requests.percentile(requests, 0.5)), 9) <>
      right.(milliseconds.(Requests.percentile(requests, 0.99)), 19)
  )
end

IO.puts("""

The nodes share the cores of this machine, and to read a digit is little work beside
the messages for it: a second node pays where it has cores of its own.
""")

# The second node is killed in the middle.
serve!.(nodes, 8)
Requests.run(pictures, processes, 0.2)
load = Task.async(fn -> Requests.run(pictures, processes, 1) end)
Process.sleep(500)
killed = System.monotonic_time(:microsecond)
:ok = Nodes.kill(second)

{failed, answered} =
  load
  |> Task.await(:infinity)
  |> Enum.split_with(fn {_, _, outcome} -> outcome == {:error, :noconnection} end)

check!.(answered)
by = fn node -> Enum.count(answered, fn {_, _, outcome} -> outcome == node end) end
after_kill = Enum.count(answered, fn {begin, _, node} -> node == first and begin > killed end)
ends = for {begin, time, _} <- failed, do: begin + time - killed

if Enum.any?(ends, &(&1 > 1_000_000)) or after_kill == 0 do
  fail!.("requests go on failing after a node has gone away")
end

IO.puts("""
#{second} is killed while #{processes} requests are under way:

#{right.(thousands.(by.(second)), 9)}  read by it before
#{right.(thousands.(length(failed)), 9)}  ended with the error :noconnection, within #{milliseconds.(Enum.max(ends, fn -> 0 end))} of the kill
#{right.(thousands.(by.(first)), 9)}  read by #{first}, #{thousands.(after_kill)} of them since
#{right.(0, 9)}  without an answer, or with a wrong one\
""")

for {_node, peer} <- peers, do: Nodes.stop(peer)
Nodes.stop_this()
