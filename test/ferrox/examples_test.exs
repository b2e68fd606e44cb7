examples = Path.expand("../../examples", __DIR__)
for file <- ~w(command drawing digits/data), do: Code.require_file("#{file}.ex", examples)
if Code.ensure_loaded?(Nx), do: Code.require_file("gpt/model.ex", examples)

defmodule Ferrox.ExamplesTest do
  # The examples convnet.exs, clusters.exs and gpt.exs; digits_test.exs and serving_test.exs test the
  # others.
  use ExUnit.Case, async: false

  import ExUnit.CaptureIO

  # The compiler warns of functions that are compiled for many shapes, as those of Nx.Random are here.
  @moduletag :capture_log

  @examples Path.expand("../../examples", __DIR__)

  # What a script prints to stdout and stderr, and how it ends.
  defp run(name, arguments) do
    before = System.argv()
    System.argv(arguments)
    path = Path.join(@examples, "#{name}.exs")
    test = self()

    try do
      errors =
        capture_io(:stderr, fn ->
          output =
            capture_io(fn ->
              send(test, {:ended, catch_exit_of(fn -> Code.eval_file(path) end)})
            end)

          send(test, {:printed, output})
        end)

      assert_received {:ended, ended}
      assert_received {:printed, output}
      {ended, output, errors}
    after
      System.argv(before)
    end
  end

  defp catch_exit_of(fun) do
    fun.()
    :ok
  catch
    :exit, reason -> reason
  end

  for name <- ~w(convnet clusters gpt) do
    test "#{name} says what its options are" do
      assert {{:shutdown, 0}, help, ""} = run(unquote(name), ["--help"])
      assert [line | lines] = String.split(help, "\n", trim: true)
      assert line =~ ~r/^#{unquote(name)}( \[--\w+ [A-Z]+\])+$/
      # One line for each option.
      options = Regex.scan(~r/--\w+/, line)
      assert Enum.count(lines, &(&1 =~ ~r/^  --\w+ [A-Z]+ +\S/)) == length(options)
    end
  end

  test "mistakes are one line, which says what is possible" do
    for {name, arguments, line} <- [
          {"convnet", ["--epoch", "3"],
           "--epoch 3 is not understood; there are --epochs N and --help"},
          {"convnet", ["--epochs", "0"], "--epochs takes a number from 1 to 1000"},
          {"convnet", ["fast"], "fast is not understood"},
          {"clusters", ["--clusters", "x"], "--clusters x is not understood"},
          {"clusters", ["--clusters", "1"], "--clusters takes a number from 2 to 100"},
          {"clusters", ["--svg", "/no/such/place.svg"],
           "--svg takes a file of a directory that is there, got: /no/such/place.svg"},
          {"gpt", ["--tokens", "1"], "--tokens takes a number from 16 to 4096"},
          {"gpt", ["--type", "u8"], "--type takes one of f32, bf16, f16"},
          {"gpt", ["--prompt", "für"], "--prompt takes 1 to 1000 printable characters of ASCII"}
        ] do
      assert {{:shutdown, 1}, "", errors} = run(name, arguments)
      assert errors =~ "#{name}: #{line}"
      assert errors |> String.split("\n") |> length() == 2
    end
  end

  for {name, app, module} <- [
        {"convnet", "Axon", Axon},
        {"clusters", "Scholar", Scholar.Cluster.KMeans},
        {"gpt", "Nx", Nx}
      ],
      not Code.ensure_loaded?(module) do
    test "#{name} says in one line that #{app} is missing, and what to do" do
      assert {{:shutdown, 1}, "", errors} = run(unquote(name), [])
      assert errors =~ ~r/^#{unquote(name)}: .*#{unquote(app)} missing: `elixir examples\//
      assert errors |> String.split("\n") |> length() == 2
    end
  end

  describe "drawings" do
    test "are well-formed, and have what they are given" do
      names = ["a < b", "c & d"]
      series = for name <- names, do: {name, [{0, 0.1}, {1, 0.35}]}

      for svg <- [
            Drawing.lines(series, title: "<t>", x: "x"),
            Drawing.points(series),
            Drawing.images([{[[0, 0.5], [1, 2]], "&"}])
          ] do
        assert Ferrox.Notebook.well_formed!(svg) == :ok
      end

      assert Drawing.lines(series) =~ ">a &lt; b</text>"
      # The ticks are round numbers around the data.
      for tick <- ~w(0.1 0.15 0.2 0.25 0.3 0.35),
          do: assert(Drawing.lines(series) =~ ">#{tick}</text>")
    end

    test "of pictures have a rectangle for each run of equal pixels" do
      svg = Drawing.images([{[[0, 1, 1], [0.5, 0, 9]], "caption"}])
      assert svg =~ ~s[<path fill="rgb(0,0,0)" d="M1 0h2v1h-2zM2 1h1v1h-1z"/>]
      assert svg =~ ~s[<path fill="rgb(128,128,128)" d="M0 1h1v1h-1z"/>]
      assert length(Regex.scan(~r/<path/, svg)) == 2
    end

    test "of numbers that are all equal have an axis too" do
      assert Drawing.lines([{"flat", [{1, 3.0}, {2, 3.0}]}]) |> Ferrox.Notebook.well_formed!()
    end
  end

  if Code.ensure_loaded?(Nx) do
    describe "gpt" do
      @describetag :nx

      setup do
        Nx.default_backend(Ferrox.Backend)
        Nx.Defn.default_options(compiler: Ferrox)
        %{spec: %{layers: 2, heads: 2, width: 8, context: 9, tokens: 11}}
      end

      test "the cache gives the scores of attention to all tokens at once", %{spec: spec} do
        weights = spec |> GPT.Model.init(:f32, 3) |> randomize()
        tokens = [3, 1, 4, 1, 5, 9, 2, 6]

        {scores, _cache} =
          Enum.map_reduce(Enum.with_index(tokens), GPT.Model.cache(spec, :f32), fn {token, at},
                                                                                   cache ->
            GPT.Model.step(weights, token, at, cache)
          end)

        expected = all_at_once(weights, Nx.tensor(tokens), spec)
        assert Nx.to_number(Nx.all_close(Nx.stack(scores), expected, atol: 1.0e-4)) == 1
        # They are not all alike.
        assert Nx.to_number(Nx.reduce_max(Nx.variance(expected, axes: [0]))) > 0.1
      end

      test "the text begins with what was given, and doesn't depend on how it is cut", %{
        spec: spec
      } do
        weights = spec |> GPT.Model.init(:f32, 3) |> randomize()
        text = Nx.tensor([7, 2, 5, 0, 0, 0, 0, 0, 0])
        cache = GPT.Model.cache(spec, :f32)
        key = Nx.Random.key(4)
        {whole, _, _} = GPT.Model.generate(weights, text, cache, key, 0, 3, 1.0, count: 8)
        {half, cache, key} = GPT.Model.generate(weights, text, cache, key, 0, 3, 1.0, count: 4)
        {both, _, _} = GPT.Model.generate(weights, half, cache, key, 4, 3, 1.0, count: 4)
        assert Nx.to_list(whole) == Nx.to_list(both)
        assert [7, 2, 5 | new] = Nx.to_list(whole)
        assert Enum.all?(new, &(&1 in 0..10)) and length(Enum.uniq(new)) > 1
      end

      test "a low temperature draws what has the greatest score", %{spec: spec} do
        weights = spec |> GPT.Model.init(:f32, 3) |> randomize()
        text = Nx.broadcast(0, {9})
        {scores, _} = GPT.Model.step(weights, 0, 0, GPT.Model.cache(spec, :f32))

        {text, _, _} =
          GPT.Model.generate(
            weights,
            text,
            GPT.Model.cache(spec, :f32),
            Nx.Random.key(1),
            0,
            1,
            1.0e-4,
            count: 1
          )

        assert Nx.to_number(text[1]) == Nx.to_number(Nx.argmax(scores))
      end

      # Weights of GPT-2's scale, which these are a multiple of, make all scores small.
      defp randomize(weights) do
        scale = fn map ->
          Map.new(map, fn {name, value} ->
            {name, if(is_tuple(value), do: value, else: Nx.add(Nx.multiply(value, 12), 0.1))}
          end)
        end

        blocks = weights.blocks |> Tuple.to_list() |> Enum.map(scale) |> List.to_tuple()
        %{scale.(weights) | blocks: blocks}
      end

      # The scores of all tokens by the formulas, without a cache and without defn.
      defp all_at_once(weights, tokens, %{heads: heads, width: width}) do
        n = Nx.size(tokens)
        x = Nx.add(Nx.take(weights.tokens, tokens), weights.positions[0..(n - 1)])

        x =
          for block <- Tuple.to_list(weights.blocks), reduce: x do
            x ->
              parts =
                norm(x, block.norm_1, block.norm_1_bias)
                |> Nx.dot(block.query_key_value)
                |> Nx.add(block.query_key_value_bias)
                |> Nx.reshape({n, 3, heads, div(width, heads)})

              [queries, keys, values] =
                for k <- 0..2, do: Nx.transpose(parts[[.., k]], axes: [1, 0, 2])

              scores =
                Nx.divide(
                  Nx.dot(queries, [2], [0], keys, [2], [0]),
                  :math.sqrt(div(width, heads))
                )

              later = Nx.less(Nx.iota({n, n}, axis: 0), Nx.iota({n, n}, axis: 1))
              scores = Nx.select(Nx.broadcast(later, Nx.shape(scores)), -1.0e9, scores)
              exp = Nx.exp(Nx.subtract(scores, Nx.reduce_max(scores, axes: [2], keep_axes: true)))
              share = Nx.divide(exp, Nx.sum(exp, axes: [2], keep_axes: true))

              attention =
                Nx.dot(share, [2], [0], values, [1], [0])
                |> Nx.transpose(axes: [1, 0, 2])
                |> Nx.reshape({n, width})
                |> Nx.dot(block.attention)
                |> Nx.add(block.attention_bias)

              x = Nx.add(x, attention)

              norm(x, block.norm_2, block.norm_2_bias)
              |> Nx.dot(block.wide)
              |> Nx.add(block.wide_bias)
              |> then(fn wide ->
                inner =
                  Nx.multiply(0.7978845608, Nx.add(wide, Nx.multiply(0.044715, Nx.pow(wide, 3))))

                Nx.multiply(Nx.multiply(0.5, wide), Nx.add(1, Nx.tanh(inner)))
              end)
              |> Nx.dot(block.narrow)
              |> Nx.add(block.narrow_bias)
              |> Nx.add(x)
          end

        Nx.dot(norm(x, weights.norm, weights.norm_bias), Nx.transpose(weights.tokens))
      end

      defp norm(x, scale, bias) do
        centred = Nx.subtract(x, Nx.mean(x, axes: [1], keep_axes: true))
        variance = Nx.mean(Nx.pow(centred, 2), axes: [1], keep_axes: true)
        Nx.add(Nx.multiply(Nx.divide(centred, Nx.sqrt(Nx.add(variance, 1.0e-5))), scale), bias)
      end

      test "the script writes text, and compares its speed with that of memory" do
        for type <- ~w(f32 bf16) do
          arguments = ~w(--tokens 32 --layers 1 --heads 2 --prompt Hello --type) ++ [type]
          assert {:ok, output, ""} = run("gpt", arguments)
          assert [text] = Regex.run(~r/^Hello.*$/m, output)
          # The prompt and 36 tokens are 41, and so are read 48 in calls for 16.
          assert String.length(text) >= 5 + 32

          assert output =~
                   ~r/^ +[\d.]+  tokens a second \(the median of 3 calls for 16 tokens each\)$/m

          assert output =~ ~r/^ +\d+%  of that is reached/m
          assert output |> String.split("\n") |> Enum.all?(&(String.length(&1) <= 90))
        end
      end
    end
  end

  if Code.ensure_loaded?(Axon) do
    @tag :nx
    test "convnet shows its progress, reads digits, and draws the wrong ones" do
      assert {:ok, output, ""} = run("convnet", ["--epochs", "8"])
      epochs = Regex.scan(~r/^ +(\d) +(\d\.\d{3}) +[\d.]+%$/m, output, capture: :all_but_first)
      assert for([epoch, _] <- epochs, do: epoch) == for(k <- 1..8, do: "#{k}")
      losses = for [_, loss] <- epochs, do: String.to_float(loss)
      assert losses == Enum.sort(losses, :desc)

      assert output =~ ~r/^360 steps took/m
      assert output =~ ~r/357 digits held out, 9[5-9]\.\d% are read correctly/
      table = Regex.scan(~r/^  \d  [ \d.]{41}$/m, output)
      assert length(table) == 10
      assert output =~ ~r/read \d, is \d/
      assert output |> String.split("\n") |> Enum.all?(&(String.length(&1) <= 80))
    end
  end

  if Code.ensure_loaded?(Scholar.Cluster.KMeans) do
    @tag :nx
    test "clusters finds the digits, and draws them" do
      path =
        Path.join(System.tmp_dir!(), "ferrox_clusters_#{System.unique_integer([:positive])}.svg")

      on_exit(fn -> File.rm(path) end)
      assert {:ok, output, ""} = run("clusters", ["--svg", path])
      assert output =~ "they have 29% of the variance"
      assert [_, share] = Regex.run(~r/^(\d\d)\.\d% of the digits are in a cluster/m, output)
      assert String.to_integer(share) > 70

      sizes = Regex.scan(~r/^ +\d +(\d+)   \d \(\d+\)/m, output, capture: :all_but_first)
      assert length(sizes) == 10
      assert sizes |> List.flatten() |> Enum.map(&String.to_integer/1) |> Enum.sum() == 1797

      svg = File.read!(path)
      assert Ferrox.Notebook.well_formed!(svg) == :ok
      # A point is a line without length.
      assert length(Regex.scan(~r/h0/, svg)) == 1797
      assert length(Regex.scan(~r/mostly \d/, svg)) == 10
    end
  end
end
