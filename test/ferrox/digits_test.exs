examples = Path.expand("../../examples", __DIR__)
Code.require_file("digits/data.ex", examples)
Code.require_file("digits/classifier.ex", examples)
if Code.ensure_loaded?(Nx), do: Code.require_file("digits/nx_classifier.ex", examples)

defmodule Ferrox.DigitsTest do
  use ExUnit.Case, async: true

  import ExUnit.CaptureIO

  alias Digits.{Classifier, Data}

  @script Path.expand("../../examples/digits.exs", __DIR__)

  setup_all do
    {training, held_out} = Enum.split(Data.load(), 1440)
    %{batches: Data.batches(training, 32), held_out: Data.tensors(held_out)}
  end

  test "the digits are complete, and shuffled the same way every time" do
    digits = Data.load()
    assert digits == Data.load()
    assert Enum.all?(digits, fn {pixels, _} -> pixels |> to_charlist() |> Enum.max() <= 16 end)

    # The counts that the source documents.
    assert Enum.frequencies_by(digits, fn {_pixels, label} -> label end) ==
             %{0 => 178, 1 => 182, 2 => 177, 3 => 183, 4 => 181}
             |> Map.merge(%{5 => 182, 6 => 181, 7 => 179, 8 => 174, 9 => 180})
  end

  test "batches are pairs of u8 tensors", %{batches: batches} do
    assert length(batches) == 45

    for {images, labels} <- batches do
      assert {Ferrox.type(images), Ferrox.shape(images)} == {{:u, 8}, {32, 64}}
      assert {Ferrox.type(labels), Ferrox.shape(labels)} == {{:u, 8}, {32}}
    end
  end

  test "the gradient is the one that differences of the loss give", %{batches: [batch | _]} do
    # In f64, where small differences are exact enough; not at zero, where all
    # classes are alike.
    weights = Ferrox.sin(Ferrox.iota({64, 10}, type: :f64))
    bias = Ferrox.cos(Ferrox.iota({10}, type: :f64))
    {_loss, {stepped_weights, stepped_bias}} = Classifier.step({weights, bias}, batch, 1.0)
    loss = fn params -> params |> Classifier.step(batch, 0.0) |> elem(0) end

    nudged = fn tensor, index, by ->
      place = Ferrox.equal(Ferrox.iota(Ferrox.shape(tensor)), index)
      Ferrox.add(tensor, Ferrox.multiply(place, by))
    end

    slope = fn tensor, index, put ->
      (loss.(put.(nudged.(tensor, index, 1.0e-5))) - loss.(put.(nudged.(tensor, index, -1.0e-5)))) /
        2.0e-5
    end

    weights_gradient = weights |> Ferrox.subtract(stepped_weights) |> Ferrox.to_flat_list()
    bias_gradient = bias |> Ferrox.subtract(stepped_bias) |> Ferrox.to_flat_list()

    for index <- 0..639//7 do
      expected = slope.(weights, index, &{&1, bias})
      assert_in_delta Enum.at(weights_gradient, index), expected, 1.0e-7
    end

    for index <- 0..9 do
      assert_in_delta Enum.at(bias_gradient, index), slope.(bias, index, &{weights, &1}), 1.0e-7
    end
  end

  test "a few epochs are enough to read digits that were held out", context do
    test = self()
    report = fn epoch, loss, _params -> send(test, {epoch, loss}) end
    params = Classifier.train(context.batches, 5, 0.5, report)

    assert Classifier.accuracy(params, context.held_out) > 0.93

    losses =
      for epoch <- 1..5 do
        assert_received {^epoch, loss}
        loss
      end

    assert losses == Enum.sort(losses, :desc)
  end

  test "pictures are drawn side by side" do
    ink = :binary.copy(<<16>>, 64)
    ramp = :binary.copy(<<0, 1, 2, 6, 9, 10, 14, 16>>, 8)

    assert [row | rows] = String.split(Data.draw([{ink, "ink"}, {ramp, "ramp"}]), "\n")
    assert row == "  ████████████████       ░░▒▒▒▒▓▓████"
    assert Enum.take(rows, 7) == List.duplicate(row, 7)
    assert Enum.drop(rows, 7) == ["  ink                ramp"]
  end

  test "the script reports its accuracy and its source, in 80 columns" do
    output = capture_io(fn -> Code.eval_file(@script) end)

    assert output =~ "UCI Machine Learning Repository"
    assert output =~ "CC BY 4.0"
    assert output =~ ~r/held out, 9[4-9]\.\d% are read correctly/
    assert output =~ ~r/read \d, is \d/
    assert output |> String.split("\n") |> Enum.all?(&(String.length(&1) <= 80))
  end

  if Code.ensure_loaded?(Nx) do
    @tag :nx
    test "Nx on Ferrox.Backend takes the steps that were written by hand", context do
      Nx.default_backend(Ferrox.Backend)

      batches =
        for {images, labels} <- context.batches, do: {Ferrox.to_nx(images), Ferrox.to_nx(labels)}

      by_hand = Classifier.train(context.batches, 2, 0.5)
      by_nx = Digits.NxClassifier.train(batches, 2, 0.5)

      for {expected, tensor} <- Enum.zip(Tuple.to_list(by_hand), Tuple.to_list(by_nx)) do
        assert %Nx.Tensor{data: %Ferrox.Backend{}} = tensor
        assert Nx.to_number(Nx.all_close(tensor, Ferrox.to_nx(expected), atol: 1.0e-5)) == 1
      end

      {images, labels} = context.held_out

      nx_accuracy =
        Digits.NxClassifier.accuracy(by_nx, {Ferrox.to_nx(images), Ferrox.to_nx(labels)})

      assert_in_delta Nx.to_number(nx_accuracy),
                      Classifier.accuracy(by_hand, context.held_out),
                      1.0e-6
    end
  end
end
