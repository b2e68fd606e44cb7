defmodule Mix.Tasks.Ferrox.Promote do
  @shortdoc "Prints the type that results from operands of several types"

  @moduledoc since: "0.1.0"
  @moduledoc """
  Prints the type that results from operands of several types.

      $ mix ferrox.promote --system jax uint8 int8 float16
      float16
      $ mix ferrox.promote --system jax,x32 uint8 1.0
      float*
      $ mix ferrox.promote u8 -- -1
      s16

  An operand is a NumPy name or an Nx short name of a type, `bool`, one of the weak types `int*`,
  `float*` and `complex*`, or a number (`1`, `1.0`, `1j`, `True`). `int16[]` is an array, for the
  legacy rule of NumPy, which treats arrays and scalars differently.

  The result is an Nx name under the systems of Nx, and a NumPy name under all others. The name of a
  weak type ends in a star. If the system refuses the promotion, the task prints one line on
  standard error, and the exit status is 1.

  ## Options

    * `--system` - one of `Ferrox.Promotion.systems/0`, `nx` by default, followed by its options
      after commas: `strict` and `x32` for `jax`, `legacy` for `numpy`, `nonprecise` and `array_api`
      for `ivy`
    * `--stdin` - read queries from standard input, one on each line, in the form
      `SYSTEM[,option...]<TAB>TYPE TYPE ...`, and answer each with one line: the result, or `error`
    * `--table SYSTEM` - print the table of all pairs
    * `--lattice SYSTEM` - draw the lattice
    * `--format` - `text` (default), `markdown`, `html` or `csv` for a table,
      `svg` (default) or `dot` for a lattice
    * `--differ` - with `--table` and `--format csv`: print 1 for the cells that differ from NumPy's
      table, and 0 for the others

  """

  use Mix.Task

  alias Ferrox.Promotion.{Query, Table}

  @switches [
    system: :string,
    stdin: :boolean,
    table: :string,
    lattice: :string,
    format: :string,
    differ: :boolean
  ]

  @impl true
  def run(args) do
    compile()

    # The first operand ends the options, so that a negative number after it is an operand.
    {opts, operands, invalid} = OptionParser.parse(args, strict: @switches)
    answer(opts, operands ++ numbers(invalid))
  end

  # Compiles the project. The messages of the compiler go to standard error, so that standard output
  # has only the answers.
  defp compile do
    shell = Mix.shell()
    Mix.shell(__MODULE__.Shell)
    Mix.Task.run("compile")
    Mix.Task.run("loadpaths")
    Mix.shell(shell)
  end

  defmodule Shell do
    @moduledoc false
    @behaviour Mix.Shell

    @impl true
    def info(message), do: error(message)

    @impl true
    def error(message), do: IO.puts(:stderr, IO.ANSI.format(message, false))

    @impl true
    defdelegate print_app(), to: Mix.Shell.Quiet

    @impl true
    defdelegate prompt(message), to: Mix.Shell.IO

    @impl true
    defdelegate yes?(message, options \\ []), to: Mix.Shell.IO

    @impl true
    defdelegate cmd(command, options \\ []), to: Mix.Shell.IO
  end

  # The operands among the invalid options: OptionParser takes `-1` for an option.
  defp numbers(invalid) do
    for {name, value} <- invalid do
      if value != nil or Query.operand(name) == :error do
        refuse("unknown option #{name}, see mix help ferrox.promote")
      end

      name
    end
  end

  defp answer(opts, operands) do
    case Keyword.take(opts, [:stdin, :table, :lattice]) do
      [] -> query(opts, operands)
      [stdin: true] when operands == [] -> answer_stdin()
      [table: system] when operands == [] -> table(system, opts)
      [lattice: system] when operands == [] -> lattice(system, opts)
      _ -> refuse("give operands, --stdin, --table or --lattice, one of them")
    end
  end

  defp query(opts, operands),
    do: opts |> Keyword.get(:system, "nx") |> mode!() |> Query.ask(operands) |> ok!() |> IO.puts()

  defp table(system, opts) do
    format = one_of!(Keyword.get(opts, :format, "text"), [:text, :markdown, :html, :csv])
    IO.write(Table.format(mode!(system), format, differ: Keyword.get(opts, :differ, false)))
  end

  defp lattice(system, opts) do
    format = one_of!(Keyword.get(opts, :format, "svg"), [:svg, :dot])
    IO.write(Table.lattice(mode!(system), format))
  rescue
    error in ArgumentError -> refuse(Exception.message(error))
  end

  defp mode!(text), do: text |> Query.mode() |> ok!()

  defp ok!({:ok, answer}), do: answer
  defp ok!({:error, message}), do: refuse(message)

  defp one_of!(text, formats) do
    Enum.find(formats, &(Atom.to_string(&1) == text)) ||
      refuse("unknown format #{inspect(text)}, expected one of: #{Enum.join(formats, ", ")}")
  end

  # Answers the lines of standard input.
  #
  # Each read and each write is a message to the group leader and a reply. So one process reads
  # ahead, and another one writes: it gets all answers at once that were computed during its
  # previous write. This is fast for a file, and answers a typed line without delay.
  defp answer_stdin do
    :io.setopts(:standard_io, binary: true, encoding: :latin1)
    answerer = self()
    reader = spawn_link(fn -> read(answerer) end)
    writer = spawn_link(fn -> write(answerer) end)
    answer_lines(reader, writer, [], :idle, :open)
  end

  defp read(answerer) do
    case IO.binread(:stdio, :line) do
      line when is_binary(line) ->
        send(answerer, {self(), line})
        read(answerer)

      _eof ->
        send(answerer, {self(), :eof})
    end
  end

  defp write(answerer) do
    receive do
      answers ->
        IO.binwrite(Enum.reverse(answers))
        send(answerer, {self(), :written})
        write(answerer)
    end
  end

  defp answer_lines(_reader, _writer, [], :idle, :eof), do: :ok

  defp answer_lines(reader, writer, [_ | _] = answers, :idle, input) do
    send(writer, answers)
    answer_lines(reader, writer, [], :busy, input)
  end

  defp answer_lines(reader, writer, answers, state, input) do
    receive do
      {^reader, :eof} -> answer_lines(reader, writer, answers, state, :eof)
      {^reader, line} -> answer_lines(reader, writer, [answer_line(line) | answers], state, input)
      {^writer, :written} -> answer_lines(reader, writer, answers, :idle, input)
    end
  end

  defp answer_line(line) do
    case line
         |> String.replace_suffix("\n", "")
         |> String.replace_suffix("\r", "")
         |> Query.line() do
      {:ok, name} -> [name, ?\n]
      {:error, _message} -> "error\n"
    end
  end

  @spec refuse(String.t()) :: no_return
  defp refuse(message) do
    IO.puts(:stderr, message)
    exit({:shutdown, 1})
  end
end
