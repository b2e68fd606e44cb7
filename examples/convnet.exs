# Trains a small convolutional net to read handwritten digits, with Axon on Ferrox:
#
#   mix run examples/convnet.exs     where Nx and Axon are in ERL_LIBS
#   elixir examples/convnet.exs      fetches them where Hex can be reached
#
# This file only reports; the work is in
#
#   digits/data.ex       the pictures: read, shuffled, drawn
#   digits/convnet.ex    the model and its training
#   command.ex           options, and libraries that are missing

Code.require_file("command.ex", __DIR__)

options =
  Command.options!(
    "convnet",
    "Trains a small convolutional net to read handwritten digits, with Axon on Ferrox.",
    epochs: {:integer, "N", 12, {1, 1000}, "how often it sees each digit; 12 if not given"}
  )

Command.libraries!("convnet", [:nx, :axon])
for file <- ~w(data convnet), do: Code.require_file("digits/#{file}.ex", __DIR__)

alias Digits.{ConvNet, Data}

Nx.default_backend(Ferrox.Backend)
Nx.Defn.default_options(compiler: Ferrox)

{training, held_out} = Enum.split(Data.load(), 1440)
batches = training |> Enum.chunk_every(32) |> Enum.map(&ConvNet.tensors/1)
model = ConvNet.model()
percent = &(Command.decimals(&1 * 100, 1) <> "%")

IO.puts("""
A convolutional net for #{length(training)} handwritten digits (their source: examples/data),
in #{Command.version("Axon", :axon)} on #{Command.version("Nx", :nx)}, compiled by Ferrox:

  epoch    loss   accuracy\
""")

report = fn epoch, loss, accuracy ->
  IO.puts(
    String.pad_leading("#{epoch}", 7) <>
      String.pad_leading(Command.decimals(loss, 3), 8) <>
      String.pad_leading(percent.(accuracy), 11)
  )
end

{time, state} = :timer.tc(fn -> ConvNet.train(model, batches, options.epochs, report) end)
{images, _targets} = ConvNet.tensors(held_out)
read = ConvNet.predict(model, state, images)
pairs = Enum.zip(held_out, read)
{right, wrong} = Enum.split_with(pairs, fn {{_pixels, label}, read} -> read == label end)

IO.puts("""

#{options.epochs * length(batches)} steps took #{Command.decimals(time / 1.0e6, 2)} s, with compilation.
Of the #{length(held_out)} digits held out, #{percent.(length(right) / length(pairs))} are read correctly.
A row for each digit, a column for what it is read as:

      #{Enum.map_join(0..9, &String.pad_leading("#{&1}", 4))}
""")

counts = Enum.frequencies(for {{_pixels, label}, read} <- pairs, do: {label, read})

for label <- 0..9 do
  cells =
    for read <- 0..9 do
      String.pad_leading("#{Map.get(counts, {label, read}, ".")}", 4)
    end

  IO.puts("  #{label}   #{cells}")
end

pictures = for {{pixels, label}, read} <- wrong, do: {pixels, "read #{read}, is #{label}"}

if pictures != [] do
  IO.puts("\nNot read correctly:\n\n" <> Data.draw(Enum.take(pictures, 4)))
end
