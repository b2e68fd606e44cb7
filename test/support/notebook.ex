unless Code.ensure_loaded?(Kino.Image) do
  # What the guides show pictures and tables with. In Livebook it is the library Kino.
  defmodule Kino.Image do
    @moduledoc false
    defstruct [:content]
    def new(content, :svg) when is_binary(content), do: %__MODULE__{content: content}
  end

  defmodule Kino.HTML do
    @moduledoc false
    defstruct [:content]
    def new(content) when is_binary(content), do: %__MODULE__{content: content}
  end
end

defmodule Ferrox.Notebook do
  @moduledoc """
  Runs the guides that are notebooks of Livebook, as Livebook does: their cells in order, each with
  the variables and imports of those before it.

  A cell may be followed by what it prints and gives, as Livebook writes it, and by the picture that
  it draws, a file of `guides/files`.
  """

  import ExUnit.CaptureIO

  # The code of a cell, the outputs after it, and the file of a picture after them.
  @cell ~r/^```elixir\n((?:(?!```).*\n)*+)```$((?:\n\n<!-- livebook:{"output":true} -->\n\n```\n(?:(?!```).*\n)*+```$)*+)(?:\n\n!\[[^\]]*\]\((files\/[^)]+)\))?/m

  @typedoc "A cell: its line, its code, the outputs after it, where these are, and the file of its picture."
  @type cell :: %{
          line: pos_integer,
          source: String.t(),
          outputs: String.t(),
          outputs_at: non_neg_integer,
          picture: String.t() | nil
        }

  @doc "The cells of a notebook; the first one sets it up."
  @spec cells(Path.t()) :: [cell]
  def cells(path) do
    text = File.read!(path)

    for [_, {start, length} = source, outputs | picture] <-
          Regex.scan(@cell, text, return: :index) do
      %{
        line: text |> binary_part(0, start) |> String.split("\n") |> length(),
        source: part(text, source),
        outputs: part(text, outputs),
        outputs_at: start + length + byte_size("```"),
        picture: if(picture != [], do: part(text, List.last(picture)))
      }
    end
  end

  defp part(text, {start, length}), do: binary_part(text, start, length)

  @doc "The code of a cell; raises if it is none."
  def quoted!(cell, path), do: Code.string_to_quoted!(cell.source, file: path, line: cell.line)

  @doc """
  What the setup cell gives to `Mix.install/2`: the dependencies and the options.
  """
  def install!(path) do
    [setup | _] = cells(path)

    {{:., _, [{:__aliases__, _, [:Mix]}, :install]}, _, arguments} = quoted!(setup, path)
    {[dependencies | options], _} = Code.eval_quoted(arguments, [], file: path)
    {dependencies, List.first(options) || []}
  end

  @doc """
  Runs a notebook, and gives what it should be: its text with the outputs that its cells have, and
  the pictures that it refers to, each `{file, svg}`. What is shown and is no SVG or HTML raises.
  """
  def run(path) do
    text = File.read!(path)
    [_setup | cells] = cells(path)
    env = Code.env_for_eval(file: path)

    {written, _, _} =
      Enum.reduce(cells, {[], [], env}, fn cell, {written, binding, env} ->
        {value, printed, binding, env} = evaluate(cell, path, binding, env)
        {[{cell, outputs(cell, value, printed), picture!(cell, value)} | written], binding, env}
      end)

    {replace(text, written), for({%{picture: file}, _, svg} <- written, file, do: {file, svg})}
  end

  defp evaluate(cell, path, binding, env) do
    test = self()

    printed =
      capture_io(fn ->
        evaluated = Code.eval_quoted_with_env(quoted!(cell, path), binding, env)
        send(test, {:evaluated, evaluated})
      end)

    receive do
      {:evaluated, {value, binding, env}} -> {value, printed, binding, env}
    end
  end

  # Only cells that have outputs in the text are held to them: others print times, say.
  defp outputs(%{outputs: ""}, _value, _printed), do: ""

  defp outputs(_cell, value, printed) do
    printed = if printed == "", do: [], else: [String.trim_trailing(printed, "\n")]
    shown? = value == :ok or is_struct(value, Kino.Image) or is_struct(value, Kino.HTML)
    value = if shown?, do: [], else: [inspect(value, pretty: true)]

    for output <- printed ++ value, into: "" do
      ~s(\n\n<!-- livebook:{"output":true} -->\n\n```\n#{output}\n```)
    end
  end

  defp picture!(_cell, %Kino.Image{content: "<svg " <> _ = svg}) do
    well_formed!(svg)
    svg
  end

  defp picture!(cell, value) do
    if is_struct(value, Kino.HTML), do: well_formed!(value.content)
    if cell.picture, do: raise("line #{cell.line}: the cell draws no #{cell.picture}")
  end

  # The last cell comes first, so that what is before it stays where it is.
  defp replace(text, written) do
    Enum.reduce(written, text, fn {%{outputs_at: at, outputs: old}, outputs, _picture}, text ->
      ends = at + byte_size(old)
      binary_part(text, 0, at) <> outputs <> binary_part(text, ends, byte_size(text) - ends)
    end)
  end

  @doc "Raises unless every element of the XML ends where it should, and has quoted attributes."
  def well_formed!(xml) do
    tags = Regex.scan(~r/<[^>]*>/, Regex.replace(~r/<style>.*?<\/style>/s, xml, ""))
    text = Regex.replace(~r/<style>.*?<\/style>|<[^>]*>/s, xml, "")
    if text =~ ~r/[<>]|&(?!(amp|lt|gt|quot|#\d+);)/, do: raise("stray characters in: #{text}")

    open =
      Enum.reduce(tags, [], fn [tag], open ->
        case {Regex.run(~r/\A<(\/?)([a-zA-Z]+)((?: [\w:-]+="[^"<&]*")*) ?(\/?)>\z/, tag), open} do
          {[_, "/", name, "", ""], [name | open]} -> open
          {[_, "", _name, _attributes, "/"], open} -> open
          {[_, "", name, _attributes, ""], open} -> [name | open]
          _ -> raise "not well-formed at #{tag}, inside of #{inspect(open)}"
        end
      end)

    if open != [], do: raise("#{inspect(open)} don't end")
    :ok
  end
end
