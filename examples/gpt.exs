# Generates text with a small GPT, whose weights are random, and compares the speed with
# that of memory:
#
#   mix run examples/gpt.exs     with the Nx of this project, or of ERL_LIBS
#   elixir examples/gpt.exs      fetches Nx where Hex can be reached
#
# The weights of all layers are read for each token, so memory limits how many there can
# be in a second. This file only reports; the work is in
#
#   gpt/model.ex    the model, in Nx
#   command.ex      options, and libraries that are missing

Code.require_file("command.ex", __DIR__)

options =
  Command.options!(
    "gpt",
    "Generates text with a small GPT, whose weights are random, and compares the speed with\n" <>
      "that of memory.",
    tokens: {:integer, "N", 256, {16, 4096}, "how many characters are written; 256 if not given"},
    layers: {:integer, "N", 8, {1, 48}, "the blocks of the model; 8 if not given"},
    heads: {:integer, "N", 8, {1, 32}, "the heads of each, of 64 elements; 8 if not given"},
    type:
      {:string, "TYPE", "f32", ~w(f32 bf16 f16), "of the weights: f32 (the default), bf16 or f16"},
    prompt: {:string, "TEXT", "Once upon a time", nil, "what comes before"},
    seed: {:integer, "N", 1, {0, 1_000_000}, "another one gives other weights; 1 if not given"}
  )

# The tokens are the printable characters of ASCII.
characters = Enum.to_list(?\s..?~)
prompt = String.to_charlist(options.prompt)

if prompt == [] or length(prompt) > 1000 or Enum.any?(prompt, &(&1 not in characters)) do
  Command.fail!("gpt", "--prompt takes 1 to 1000 printable characters of ASCII")
end

Command.libraries!("gpt", [:nx])
Code.require_file("gpt/model.ex", __DIR__)
alias GPT.Model

Nx.default_backend(Ferrox.Backend)
Nx.Defn.default_options(compiler: Ferrox)

type = String.to_existing_atom(options.type)
# How many tokens each call of the compiled function writes.
chunk = 16
calls = div(options.tokens + length(prompt) + chunk - 2, chunk)

spec = %{
  layers: options.layers,
  heads: options.heads,
  width: 64 * options.heads,
  context: calls * chunk + 1,
  tokens: length(characters)
}

weights = Model.init(spec, type, options.seed)
megabytes = fn bytes -> "#{round(bytes / 1.0e6)} MB" end

IO.puts("""
A GPT of #{spec.layers} layers of width #{spec.width}, with #{megabytes.(Model.bytes_per_token(weights))} of #{type} at random, on
#{Command.version("Nx", :nx)}, compiled by Ferrox. The weights are random, and so is what it writes:
""")

text =
  Nx.pad(Nx.tensor(Enum.map(prompt, &(&1 - ?\s))), 0, [{0, spec.context - length(prompt), 0}])

state = {text, Model.cache(spec, type), Nx.Random.key(options.seed)}

arguments = fn {text, cache, key}, position ->
  [weights, text, cache, key, position, length(prompt), 1.0]
end

generate =
  Nx.Defn.compile(
    &Model.generate(&1, &2, &3, &4, &5, &6, &7, count: chunk),
    arguments.(state, 0)
  )

characters_of = fn {text, _cache, _key}, from, count ->
  text |> Nx.slice([from], [count]) |> Nx.to_list() |> Enum.map(&(&1 + ?\s))
end

IO.write(options.prompt)

{times, _state} =
  Enum.map_reduce(0..(calls - 1), state, fn call, state ->
    position = call * chunk
    {time, state} = :timer.tc(fn -> apply(generate, arguments.(state, position)) end)
    new = characters_of.(state, position + 1, chunk)
    # What of them the prompt had is there.
    IO.write(Enum.drop(new, max(length(prompt) - position - 1, 0)))
    {time, state}
  end)

# How fast memory is read, by a sum of more than the caches hold.
block = Nx.iota({64_000_000}, type: :f32)
sum = Nx.Defn.compile(&Nx.sum/1, [block])
sum_times = for _ <- 1..7, do: fn -> sum.(block) end |> :timer.tc() |> elem(0)
memory = Nx.byte_size(block) / Enum.min(sum_times) * 1.0e6

median = times |> Enum.sort() |> Enum.at(div(length(times), 2))
tokens_per_second = chunk / median * 1.0e6
read = tokens_per_second * Model.bytes_per_token(weights)
gigabytes = fn bytes -> Command.decimals(bytes / 1.0e9, 1) <> " GB/s" end
right = &String.pad_leading(&1, 10)

IO.puts("""


#{right.(Command.decimals(tokens_per_second, 1))}  tokens a second (the median of #{length(times)} calls for #{chunk} tokens each)
#{right.(gigabytes.(read))}  of weights are read for them
#{right.(gigabytes.(memory))}  is what a sum of #{megabytes.(Nx.byte_size(block))} reads
#{right.("#{round(100 * read / memory)}%")}  of that is reached; more than 100% where caches hold the weights\
""")
