defmodule Ferrox.Guide do
  @moduledoc """
  The code in the guides that are no notebooks and in README.md, which tests run.

  A test takes all blocks of a file by a pattern, so that it fails where one is added and not run.
  """

  import ExUnit.CaptureIO

  @root Path.expand("../..", __DIR__)

  @doc "The blocks of Elixir of a file, whose path is that in the repository."
  @spec blocks(Path.t()) :: [String.t()]
  def blocks(file) do
    text = @root |> Path.join(file) |> File.read!()
    for [_, block] <- Regex.scan(~r/^```elixir\n(.*?)^```$/ms, text), do: block
  end

  @doc "What a block gives, with values for its variables."
  @spec run(String.t(), keyword) :: term
  def run(block, variables \\ []), do: block |> Code.eval_string(variables) |> elem(0)

  @doc "The settings that a block makes, which is part of a `config/config.exs`."
  @spec settings(String.t()) :: keyword
  def settings(block), do: Config.Reader.eval!("config/config.exs", "import Config\n" <> block)

  @doc """
  What the lines of an example that begin with `iex>` or `...>` print, and give if that isn't `:ok`.
  """
  @spec printed(String.t()) :: String.t()
  def printed(example) do
    code = for [_, line] <- Regex.scan(~r/^ *(?:iex|\.\.\.)> (.*)$/m, example), do: [line, "\n"]

    output =
      capture_io(fn ->
        result = code |> IO.iodata_to_binary() |> run()
        if result != :ok, do: IO.inspect(result)
      end)

    String.trim(output)
  end

  @doc "What an example says that it prints and gives: its lines after those of code."
  @spec expected(String.t()) :: String.t()
  def expected(example) do
    lines = String.split(example, "\n")
    lines |> Enum.drop_while(&(&1 =~ ~r/^(iex|\.\.\.)>/)) |> Enum.join("\n") |> String.trim()
  end
end
