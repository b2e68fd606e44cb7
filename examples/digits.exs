# Trains a classifier of handwritten digits with Ferrox, and tests it on digits
# that it hasn't seen. `bin/demo` runs this file, which only reports; the work is in
#
#   digits/data.ex            the pictures: read, shuffled, batched, drawn
#   digits/classifier.ex      the model, its gradient written by hand
#   digits/nx_classifier.ex   the same model in Nx, which finds the gradient itself

Code.require_file("digits/data.ex", __DIR__)
Code.require_file("digits/classifier.ex", __DIR__)

alias Digits.{Classifier, Data}

epochs = 30
learning_rate = 0.5

decimals = fn number, count -> :erlang.float_to_binary(number / 1, decimals: count) end
percent = fn share -> decimals.(share * 100, 1) <> "%" end
seconds = fn microseconds -> decimals.(microseconds / 1_000_000, 2) <> " s" end

check! = fn accuracy ->
  if accuracy < 0.93 do
    IO.puts(:stderr, "\nThis model reads 95% or so; less than 93% means that Ferrox is broken.")
    exit({:shutdown, 1})
  end
end

digits = Data.load()
{training_digits, held_out_digits} = Enum.split(digits, 1440)
training = Data.tensors(training_digits)
held_out = {held_out_images, _labels} = Data.tensors(held_out_digits)
batches = Data.batches(training_digits, 32)

IO.puts("""
#{length(digits)} handwritten digits of 8 x 8 pixels, from: E. Alpaydin, C. Kaynak,
"Optical Recognition of Handwritten Digits", UCI Machine Learning Repository,
https://doi.org/10.24432/C50P49, licence CC BY 4.0

Training a softmax classifier on #{length(training_digits)} of them:

  epoch    loss   accuracy\
""")

report = fn epoch, loss, params ->
  if epoch == 1 or rem(epoch, 5) == 0 do
    accuracy = percent.(Classifier.accuracy(params, training))

    IO.puts(
      String.pad_leading("#{epoch}", 7) <>
        String.pad_leading(decimals.(loss, 3), 8) <> String.pad_leading(accuracy, 11)
    )
  end
end

{time, params} = :timer.tc(fn -> Classifier.train(batches, epochs, learning_rate, report) end)

accuracy = Classifier.accuracy(params, held_out)

IO.puts("""

#{epochs} epochs of #{length(batches)} batches took #{seconds.(time)}.
Of the #{length(held_out_digits)} digits held out, #{percent.(accuracy)} are read correctly. Some of them:
""")

{right, wrong} =
  held_out_digits
  |> Enum.zip(Ferrox.to_list(Classifier.predict(params, held_out_images)))
  |> Enum.split_with(fn {{_pixels, label}, predicted} -> predicted == label end)

different = Enum.uniq_by(right, fn {_digit, predicted} -> predicted end)

pictures =
  for {{pixels, label}, predicted} <- Enum.take(different, 3) ++ Enum.take(wrong, 1) do
    {pixels, "read #{predicted}, is #{label}"}
  end

IO.puts(Data.draw(pictures))
check!.(accuracy)

if Code.ensure_loaded?(Nx) do
  Code.require_file("digits/nx_classifier.ex", __DIR__)
  alias Digits.NxClassifier

  # Both keep their data as binaries, so nothing is copied.
  to_nx = fn {images, labels} -> {Ferrox.to_nx(images), Ferrox.to_nx(labels)} end
  batches = Enum.map(batches, to_nx)

  # Functions become native programs, whose tensors are those of Ferrox.Backend.
  Nx.default_backend(Ferrox.Backend)
  Nx.Defn.default_options(compiler: Ferrox)
  {time, params} = :timer.tc(fn -> NxClassifier.train(batches, epochs, learning_rate) end)
  accuracy = params |> NxClassifier.accuracy(to_nx.(held_out)) |> Nx.to_number()

  IO.puts("""

  The same through Nx #{Application.spec(:nx, :vsn)} and defn, compiled by Ferrox, took #{seconds.(time)}.
  Of the digits held out, #{percent.(accuracy)} are read correctly.\
  """)

  check!.(accuracy)

  # The steps of one epoch, the same ones each time.
  median_step = fn backend, compiler ->
    Nx.default_backend(backend)
    Nx.Defn.default_options(compiler: compiler)
    batches = Enum.map(batches, &Nx.backend_copy(&1, backend))
    step = NxClassifier.compile_step(batches, learning_rate)

    {times, _params} =
      Enum.map_reduce(batches, NxClassifier.init(), fn batch, params ->
        {time, {_loss, params}} = :timer.tc(fn -> step.(params, batch, learning_rate) end)
        {time, params}
      end)

    times |> Enum.sort() |> Enum.at(div(length(times), 2))
  end

  compiled = median_step.(Ferrox.Backend, Ferrox)
  evaluated = median_step.(Ferrox.Backend, Nx.Defn.Evaluator)
  binary = median_step.(Nx.BinaryBackend, Nx.Defn.Evaluator)
  milliseconds = fn microseconds -> decimals.(microseconds / 1000, 3) <> " ms" end

  IO.puts("""
  A training step takes #{milliseconds.(compiled)} compiled, #{milliseconds.(evaluated)} with Nx's evaluator
  on Ferrox.Backend, and #{milliseconds.(binary)} on Nx.BinaryBackend (medians of
  #{length(batches)} steps): compiled it is #{decimals.(evaluated / compiled, 1)} times faster than evaluated,
  and #{round(binary / compiled)} times faster than on Nx.BinaryBackend.\
  """)
end
