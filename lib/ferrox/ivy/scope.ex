defmodule Ferrox.Ivy.Scope do
  @moduledoc false
  # The settings that Ivy keeps in global stacks. Here every process has its own stack for each
  # setting. The value below an empty stack is that of the application's configuration, such as
  # `config :ferrox, ivy: [precise: false]`.

  @doc "Pushes a value on the stack of a setting."
  @spec push(atom, term) :: :ok
  def push(setting, value), do: put_stack(setting, [value | stack(setting)])

  @doc "Removes the last value from the stack of a setting. Does nothing if the stack is empty."
  @spec pop(atom) :: :ok
  def pop(setting), do: put_stack(setting, Enum.drop(stack(setting), 1))

  @doc "Returns the stack of a setting, the last value first."
  @spec stack(atom) :: list
  def stack(setting), do: Process.get({__MODULE__, setting}, [])

  defp put_stack(setting, stack) do
    if stack == [],
      do: Process.delete({__MODULE__, setting}),
      else: Process.put({__MODULE__, setting}, stack)

    :ok
  end

  @doc """
  Returns the last value on the stack of a setting, else the configured value as `check` returns it,
  else `default`.
  """
  @spec get(atom, term, (term -> term)) :: term
  def get(setting, default \\ nil, check) do
    with [] <- stack(setting),
         [_ | _] = settings <- Application.get_env(:ferrox, :ivy, []),
         {:ok, value} <- Keyword.fetch(settings, setting) do
      check.(value)
    else
      [value | _] -> value
      _ -> default
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
      put_stack(setting, previous)
    end
  end

  def run(_setting, _value, other) do
    raise ArgumentError, "expected a function without arguments, got: #{inspect(other)}"
  end
end
