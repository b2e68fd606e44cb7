defmodule Ferrox.Complex do
  @moduledoc since: "0.1.0"
  @moduledoc """
  Complex numbers, with or without the `complex` package.

  Nx represents complex numbers by the `Complex` struct of that package. Ferrox doesn't need the
  package: `new/2` returns a `Complex` struct if the package is available, so that Nx accepts the
  number, and a `Ferrox.Complex` struct if it isn't. Both structs have the fields `:re` and `:im`,
  look the same when inspected, and are accepted wherever Ferrox takes a complex number.

      iex> Ferrox.Complex.new(1, -2)
      ...> |> inspect()
      "1.0-2.0i"

  Each part is a float, or one of the atoms `:infinity`, `:neg_infinity` and `:nan`, since Erlang's
  floats have no such values.

  Ferrox looks for the package at run time, because Ferrox may have been compiled before the
  package was put on the code path.
  """

  defstruct re: 0.0, im: 0.0

  @typedoc "A value that Erlang's floats don't have."
  @type non_finite :: :infinity | :neg_infinity | :nan

  @typedoc "A complex number, as the package's struct or this module's."
  @type t :: %{__struct__: module, re: number | non_finite, im: number | non_finite}

  @non_finite [:infinity, :neg_infinity, :nan]

  @doc """
  Returns whether the term is a complex number. Allowed in guards.

  ## Examples

      iex> require Ferrox.Complex
      iex> Ferrox.Complex.is_complex(Ferrox.Complex.new(1))
      true
      iex> Ferrox.Complex.is_complex(1.0)
      false

  """
  defguard is_complex(term) when is_struct(term, Complex) or is_struct(term, Ferrox.Complex)

  @doc """
  Returns the complex number with these parts, converted to floats.

  ## Examples

      iex> %{re: re, im: im} = Ferrox.Complex.new(3, 4)
      iex> {re, im}
      {3.0, 4.0}

      iex> %{re: re, im: im} = Ferrox.Complex.new(:nan)
      iex> {re, im}
      {:nan, 0.0}

  Any other term raises an `ArithmeticError`, as in the package.

  """
  @spec new(number | non_finite, number | non_finite) :: t
  def new(re, im \\ 0), do: %{__struct__: module(), re: to_float(re), im: to_float(im)}

  @doc """
  Returns the real and the imaginary part of a complex or real number.

  ## Examples

      iex> Ferrox.Complex.parts(Ferrox.Complex.new(1, :infinity))
      {1.0, :infinity}
      iex> Ferrox.Complex.parts(2)
      {2.0, 0.0}

  """
  @spec parts(t | number | non_finite) :: {float | non_finite, float | non_finite}
  def parts(%{re: re, im: im} = complex) when is_complex(complex),
    do: {to_float(re), to_float(im)}

  def parts(real) when is_number(real) or real in @non_finite, do: {to_float(real), 0.0}

  @doc """
  Returns the number as text, in the same form as `inspect/2`.

  ## Examples

      iex> Ferrox.Complex.to_string(Ferrox.Complex.new(1, 2))
      "1.0+2.0i"
      iex> Ferrox.Complex.to_string(Ferrox.Complex.new(:neg_infinity, :nan))
      "-Inf+NaNi"

  """
  @spec to_string(t) :: String.t()
  def to_string(%{re: re, im: im} = complex) when is_complex(complex) do
    {re_sign, re_digits} = sign_and_digits(re)
    {im_sign, im_digits} = sign_and_digits(im)
    String.trim_leading(re_sign, "+") <> re_digits <> im_sign <> im_digits <> "i"
  end

  # The module of the structs that new/2 returns. Code that creates many structs calls this function
  # once.
  #
  # The answer is cached, because looking for a module that doesn't exist searches the disk each
  # time. If the package is loaded later, its module replaces the cached answer.
  @doc false
  @spec module() :: module
  def module do
    case :persistent_term.get(__MODULE__, nil) do
      __MODULE__ -> if :erlang.module_loaded(Complex), do: find_module(), else: __MODULE__
      nil -> find_module()
      package -> package
    end
  end

  defp find_module do
    package = Complex

    # An application may have its own module named Complex, with other fields.
    usable? =
      Code.ensure_loaded?(package) and function_exported?(package, :__struct__, 0) and
        match?(%{re: _, im: _}, struct(package))

    module = if usable?, do: package, else: __MODULE__
    :persistent_term.put(__MODULE__, module)
    module
  end

  defp to_float(part) when is_float(part) or part in @non_finite, do: part
  defp to_float(part), do: part * 1.0

  defp sign_and_digits(:infinity), do: {"+", "Inf"}
  defp sign_and_digits(:neg_infinity), do: {"-", "Inf"}
  defp sign_and_digits(:nan), do: {"+", "NaN"}
  # A negative zero is written without its sign, as in the package.
  defp sign_and_digits(part) when part == 0, do: {"+", "0.0"}
  defp sign_and_digits(part) when part < 0, do: {"-", Kernel.to_string(-part)}
  defp sign_and_digits(part), do: {"+", Kernel.to_string(part)}

  defimpl Inspect do
    @impl true
    def inspect(complex, _opts), do: Ferrox.Complex.to_string(complex)
  end

  defimpl String.Chars do
    @impl true
    def to_string(complex), do: Ferrox.Complex.to_string(complex)
  end
end
