defmodule Ferrox.Complex do
  @moduledoc """
  Complex numbers, with or without the `complex` package.

  Nx writes complex numbers as the `Complex` struct of that package. Ferrox
  doesn't need the package: `new/2` returns its struct where it is there, so
  that numbers can go on to Nx, and a `Ferrox.Complex` where it isn't. Both
  have the fields `:re` and `:im`, read the same when inspected, and are
  accepted wherever Ferrox takes a complex number.

      iex> Ferrox.Complex.new(1, -2)
      ...> |> inspect()
      "1.0-2.0i"

  Each part is a float, or `:infinity`, `:neg_infinity` or `:nan`, which
  Erlang's floats can't be.

  Whether the package is there is asked at run time, since Ferrox may have been
  compiled before the package was put on the code path.
  """

  defstruct re: 0.0, im: 0.0

  @typedoc "What Erlang's floats can't be."
  @type non_finite :: :infinity | :neg_infinity | :nan

  @typedoc "A complex number, as the package's struct or this module's."
  @type t :: %{__struct__: module, re: number | non_finite, im: number | non_finite}

  @non_finite [:infinity, :neg_infinity, :nan]

  @doc """
  Whether the term is a complex number. Allowed in guards.

  ## Examples

      iex> require Ferrox.Complex
      iex> Ferrox.Complex.is_complex(Ferrox.Complex.new(1))
      true
      iex> Ferrox.Complex.is_complex(1.0)
      false

  """
  defguard is_complex(term) when is_struct(term, Complex) or is_struct(term, Ferrox.Complex)

  @doc """
  A complex number from its parts, which become floats.

  ## Examples

      iex> %{re: re, im: im} = Ferrox.Complex.new(3, 4)
      iex> {re, im}
      {3.0, 4.0}

      iex> %{re: re, im: im} = Ferrox.Complex.new(:nan)
      iex> {re, im}
      {:nan, 0.0}

  What is no number raises an `ArithmeticError`, as in the package:

      iex> Ferrox.Complex.new(nil)
      ** (ArithmeticError) bad argument in arithmetic expression

  """
  @spec new(number | non_finite, number | non_finite) :: t
  def new(re, im \\ 0), do: %{__struct__: module(), re: to_float(re), im: to_float(im)}

  @doc """
  The real and the imaginary part of a complex or a real number.

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
  The number as text, as it is inspected.

  ## Examples

      iex> Ferrox.Complex.to_string(Ferrox.Complex.new(1, 2))
      "1.0+2.0i"
      iex> Ferrox.Complex.to_string(Ferrox.Complex.new(:neg_infinity, :nan))
      "-Inf+NaNi"

  """
  @spec to_string(t) :: String.t()
  def to_string(%{re: re, im: im} = complex) when is_complex(complex) do
    {re_sign, re_digits} = digits(re)
    {im_sign, im_digits} = digits(im)
    String.trim_leading(re_sign, "+") <> re_digits <> im_sign <> im_digits <> "i"
  end

  # The module whose struct new/2 makes. Whoever makes many asks once.
  #
  # The code server is asked once, because a module that isn't there makes it
  # search the disk each time. When the package is loaded later on, it is taken
  # up.
  @doc false
  @spec module() :: module
  def module do
    case :persistent_term.get(__MODULE__, nil) do
      __MODULE__ -> if :erlang.module_loaded(Complex), do: decide(), else: __MODULE__
      nil -> decide()
      package -> package
    end
  end

  defp decide do
    package = Complex

    # Applications may have a Complex of their own.
    usable? =
      Code.ensure_loaded?(package) and function_exported?(package, :__struct__, 0) and
        match?(%{re: _, im: _}, struct(package))

    module = if usable?, do: package, else: __MODULE__
    :persistent_term.put(__MODULE__, module)
    module
  end

  defp to_float(part) when is_float(part) or part in @non_finite, do: part
  defp to_float(part), do: part * 1.0

  defp digits(:infinity), do: {"+", "Inf"}
  defp digits(:neg_infinity), do: {"-", "Inf"}
  defp digits(:nan), do: {"+", "NaN"}
  # Negative zero is written without its sign, as in the package.
  defp digits(part) when part == 0, do: {"+", "0.0"}
  defp digits(part) when part < 0, do: {"-", Kernel.to_string(-part)}
  defp digits(part), do: {"+", Kernel.to_string(part)}

  defimpl Inspect do
    def inspect(complex, _opts), do: Ferrox.Complex.to_string(complex)
  end

  defimpl String.Chars do
    def to_string(complex), do: Ferrox.Complex.to_string(complex)
  end
end
