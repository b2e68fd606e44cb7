defmodule Ferrox.Ivy.Scope do
  @moduledoc false
  # The settings that Ivy keeps in global stacks. Here every process has its own stack for each
  # setting. The value below an empty stack is that of the application's configuration, such as
  # `config :ferrox, ivy: [precise: false]`.

  @doc "Pushes a value on the stack of a setting."
  @spec push(atom, term) :: :ok
  def push(setting, value) do
    Process.put({__MODULE__, setting}, [value | stack(setting)])
    :ok
  end

  @doc "Removes the last value from the stack of a setting. Does nothing if the stack is empty."
  @spec pop(atom) :: :ok
  def pop(setting) do
    case stack(setting) do
      [] -> :ok
      [_] -> Process.delete({__MODULE__, setting})
      [_ | rest] -> Process.put({__MODULE__, setting}, rest)
    end

    :ok
  end

  @doc "Returns the stack of a setting, the last value first."
  @spec stack(atom) :: list
  def stack(setting), do: Process.get({__MODULE__, setting}, [])

  @doc """
  Returns the last value on the stack of a setting, else the configured value as `check` returns it.
  """
  @spec fetch(atom, (term -> term)) :: {:ok, term} | :error
  def fetch(setting, check) do
    case Process.get({__MODULE__, setting}) do
      [value | _] -> {:ok, value}
      nil -> configured(setting, check)
    end
  end

  defp configured(setting, check) do
    with [_ | _] = settings <- Application.get_env(:ferrox, :ivy, []),
         {:ok, value} <- Keyword.fetch(settings, setting) do
      {:ok, check.(value)}
    else
      _ -> :error
    end
  end

  @doc """
  Runs the function with a value on the stack of a setting. Then the stack is what it was before, also
  if the function has pushed or popped values, or raises.
  """
  @spec run(atom, term, fun) :: term
  def run(setting, value, fun) when is_function(fun, 0) do
    previous = stack(setting)
    push(setting, value)

    try do
      fun.()
    after
      if previous == [],
        do: Process.delete({__MODULE__, setting}),
        else: Process.put({__MODULE__, setting}, previous)
    end
  end

  def run(_setting, _value, other) do
    raise ArgumentError, "expected a function without arguments, got: #{inspect(other)}"
  end
end
