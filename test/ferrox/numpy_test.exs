defmodule Ferrox.NumPyTest do
  # What NumPy gives for the same calls, as test/fixtures/numpy/make.py has recorded it.
  use ExUnit.Case, async: true

  alias Ferrox.{Promotion, Tensor}

  @file_name Path.expand("../fixtures/numpy/calls.txt", __DIR__)
  @external_resource @file_name

  rows =
    for line <- File.stream!(@file_name) do
      [call, result, units] = line |> String.trim_trailing("\n") |> String.split("\t")
      [_, name] = Regex.run(~r/(Ferrox[\w.]*)/, call)
      {if(name == "Ferrox.tensor", do: "tensor[...]", else: name), {call, result, units}}
    end

  for {name, rows} <- Enum.group_by(rows, &elem(&1, 0), &elem(&1, 1)) do
    test "#{name}" do
      wrong =
        Promotion.with(:numpy, fn ->
          for {call, result, units} <- unquote(Macro.escape(rows)),
              {units, ""} = Float.parse(units),
              expected = evaluate(result),
              got = evaluate(call),
              not same?(got, expected, units),
              do: "#{call}\n  gives #{inspect(got)}\n  and not #{inspect(expected)}"
        end)

      assert wrong == [], Enum.join(wrong, "\n")
    end
  end

  defp evaluate(code), do: code |> Code.eval_string() |> elem(0)

  defp same?(got, expected, units) when is_tuple(got) and is_tuple(expected) do
    tuple_size(got) == tuple_size(expected) and
      [got, expected]
      |> Enum.map(&Tuple.to_list/1)
      |> Enum.zip()
      |> Enum.all?(fn {a, b} -> same?(a, b, units) end)
  end

  defp same?(
         %Tensor{type: type, shape: shape} = got,
         %Tensor{type: type, shape: shape} = expected,
         units
       ) do
    elements = Ferrox.to_flat_list(expected)
    tolerance = units * precision(type) * (elements |> Enum.map(&magnitude/1) |> Enum.max())

    got
    |> Ferrox.to_flat_list()
    |> Enum.zip(elements)
    |> Enum.all?(fn {a, b} -> close?(a, b, tolerance) end)
  end

  defp same?(_got, _expected, _units), do: false

  defp precision({:f, 16}), do: 2.0 ** -10
  defp precision(type) when type in [{:f, 32}, {:c, 64}], do: 2.0 ** -23
  defp precision(_type), do: 2.0 ** -52

  defp magnitude(%{re: re, im: im}), do: max(magnitude(re), magnitude(im))
  defp magnitude(number) when is_number(number), do: abs(number)
  defp magnitude(_other), do: 0

  defp close?(%{re: a, im: b}, %{re: c, im: d}, tolerance),
    do: close?(a, c, tolerance) and close?(b, d, tolerance)

  defp close?(a, b, tolerance) when is_number(a) and is_number(b), do: abs(a - b) <= tolerance
  defp close?(a, b, _tolerance), do: a == b
end
