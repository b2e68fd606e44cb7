defmodule Digits.Data do
  @moduledoc """
  The pictures: read from files, shuffled, made tensors of, and drawn.

  A digit is `{pixels, label}`: 64 bytes, one for each of 8 x 8 pixels from 0, the
  paper, to 16, ink; and the number that it shows.
  """

  @directory Path.expand("../data", __DIR__)

  @doc "All digits, shuffled, in the same order in every run."
  def load do
    images = Ferrox.load_npy!(Path.join(@directory, "digits_images.npy"))
    labels = Ferrox.load_npy!(Path.join(@directory, "digits_labels.npy"))

    # A tensor's data are an ordinary binary: Elixir's own tools take it apart.
    pixels = for <<picture::binary-size(64) <- Ferrox.to_binary(images)>>, do: picture

    # Not Enum.shuffle/1, whose order depends on the version of Elixir.
    :rand.seed(:exsss, 1797)

    pixels
    |> Enum.zip(Ferrox.to_flat_list(labels))
    |> Enum.sort_by(fn _digit -> :rand.uniform() end)
  end

  @doc "Digits as two u8 tensors: images of shape `{n, 64}` and labels of shape `{n}`."
  def tensors(digits) do
    {pixels, labels} = Enum.unzip(digits)
    images = pixels |> IO.iodata_to_binary() |> Ferrox.from_binary(:u8)
    {Ferrox.reshape(images, {:auto, 64}), Ferrox.tensor(labels, type: :u8)}
  end

  @doc "The digits in pairs of tensors, `size` of them in each; what is left over is dropped."
  def batches(digits, size) do
    digits |> Enum.chunk_every(size, size, :discard) |> Enum.map(&tensors/1)
  end

  @doc "Pictures side by side, each `{pixels, caption}` with its caption below."
  def draw(pictures) do
    pictures
    |> Enum.map(fn {pixels, caption} ->
      rows = for <<row::binary-size(8) <- pixels>>, do: for(<<pixel <- row>>, do: shade(pixel))
      rows ++ [String.pad_trailing(caption, 16)]
    end)
    |> Enum.zip_with(fn row -> "  " <> Enum.join(row, "   ") end)
    |> Enum.map_join("\n", &String.trim_trailing/1)
  end

  # Two characters wide, since a terminal's characters are twice as high as wide.
  defp shade(pixel), do: Enum.at(["  ", "░░", "▒▒", "▓▓", "██"], div(pixel + 2, 4))
end
