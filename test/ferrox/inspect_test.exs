defmodule Ferrox.InspectTest do
  use ExUnit.Case, async: true

  import Ferrox.Bits, only: [bound_size: 1]

  alias Ferrox.Tensor

  @narrow [f: 8, f8_e4m3fn: 8, f: 16, bf: 16]

  # The texts of all elements.
  defp texts(data, {_, bits} = type) do
    tensor = %Tensor{data: data, type: type, shape: {div(bit_size(data), bits)}}
    [_, _, "  [" <> list, _] = tensor |> inspect(limit: :infinity) |> String.split("\n")
    list |> String.trim_trailing("]") |> String.split(", ")
  end

  # Every value of a type of 8 or 16 bits.
  defp every({_, bits}),
    do: for(n <- 0..(Bitwise.bsl(1, bits) - 1), into: <<>>, do: <<n::size(bits)-native>>)

  # Values of f32 where algorithms go wrong: beside powers of two, random ones,
  # and decimals of few digits.
  defp some_f32 do
    powers =
      for exponent <- 0..254, fraction <- [0, 1, 2, 0x7FFFFE, 0x7FFFFF], into: <<>> do
        <<Bitwise.bsl(exponent, 23) + fraction::32-native>>
      end

    :rand.seed(:exsss, {1, 2, 3})
    random = for _ <- 1..5_000, into: <<>>, do: <<:rand.uniform(0x7F7FFFFF)::32-native>>

    decimals =
      for digits <- 1..50, exponent <- -44..36, into: <<>> do
        <<digits * :math.pow(10, exponent)::float-32-native>>
      end

    powers <> random <> decimals
  end

  defp number("Inf"), do: :infinity
  defp number("-Inf"), do: :neg_infinity
  defp number("NaN"), do: :nan

  defp number(text) do
    {float, ""} = Float.parse(text)
    float
  end

  # The digits of a decimal without zeros at its ends, and the power of ten that
  # the last of them counts.
  defp digits(text) do
    [significand, exponent] = String.split(text <> "e0", "e") |> Enum.take(2)
    [whole, fraction] = String.split(significand <> ".", ".") |> Enum.take(2)
    all = whole <> fraction
    kept = String.trim_trailing(all, "0")
    zeros = byte_size(all) - byte_size(kept)

    {String.to_integer(kept), String.to_integer(exponent) - byte_size(fraction) + zeros}
  end

  describe "layout" do
    test "of scalars, vectors and more axes" do
      assert inspect(Ferrox.tensor(1)) == "#Ferrox.Tensor<\n  s32\n  1\n>"
      assert inspect(Ferrox.tensor([1, -2])) == "#Ferrox.Tensor<\n  s32[2]\n  [1, -2]\n>"

      assert inspect(Ferrox.iota({2, 1, 2}, type: :f32)) == """
             #Ferrox.Tensor<
               f32[2][1][2]
               [
                 [
                   [0.0, 1.0]
                 ],
                 [
                   [2.0, 3.0]
                 ]
               ]
             >\
             """
    end

    test "inside of other terms" do
      assert inspect({:ok, Ferrox.tensor([1, 2])}) == """
             {:ok, #Ferrox.Tensor<
                s32[2]
                [1, 2]
              >}\
             """
    end

    test "leaves out what is past the limit" do
      tensor = Ferrox.iota({3, 4})

      assert inspect(tensor, limit: 5) == """
             #Ferrox.Tensor<
               s32[3][4]
               [
                 [0, 1, 2, 3],
                 [4, ...],
                 ...
               ]
             >\
             """

      assert inspect(tensor, limit: 4) =~ "  [\n    [0, 1, 2, 3],\n    ...\n  ]\n"
      assert inspect(tensor, limit: 0) =~ "  [\n    ...\n  ]\n"
      assert inspect(tensor, limit: 11) =~ "[8, 9, 10, ...]\n"
      assert inspect(tensor, limit: 12) =~ "[8, 9, 10, 11]\n"
      assert inspect(tensor, limit: :infinity) == inspect(tensor, limit: 12)
      assert inspect(Ferrox.tensor(7), limit: 0) =~ "  7\n"
      assert inspect(Ferrox.iota({51}), limit: 50) =~ "48, 49, ...]"
      refute inspect(Ferrox.iota({50}), limit: 50) =~ "..."

      # The default differs between versions of Elixir.
      default = %Inspect.Opts{}.limit
      assert inspect(Ferrox.iota({default + 1})) =~ "#{default - 2}, #{default - 1}, ...]"
      refute inspect(Ferrox.iota({default})) =~ "..."
    end

    test "reads no more elements than it shows" do
      tensor = Ferrox.iota({10_000_000}, type: :f32)
      {:reductions, before} = Process.info(self(), :reductions)
      assert inspect(tensor, limit: 50) =~ "49.0, ...]"
      {:reductions, later} = Process.info(self(), :reductions)
      assert later - before < 100_000
    end

    test "has colours" do
      colours = [list: :red, atom: :blue, map: :green]
      {map, atom, list, reset} = {"\e[32m", "\e[34m", "\e[31m", "\e[0m"}

      assert inspect(Ferrox.tensor([1, 2]), syntax_colors: colours) ==
               "#{map}#Ferrox.Tensor<#{reset}\n" <>
                 "  #{atom}s32#{reset}#{list}[#{reset}2#{list}]#{reset}\n" <>
                 "  #{list}[#{reset}1#{list},#{reset} 2#{list}]#{reset}\n" <>
                 "#{map}>#{reset}"
    end
  end

  describe "elements" do
    test "of integers" do
      for {kind, bits} = type <- for(k <- [:s, :u], b <- [2, 4, 8, 16, 32, 64], do: {k, b}) do
        {min, max} =
          if kind == :s,
            do: {-Bitwise.bsl(1, bits - 1), Bitwise.bsl(1, bits - 1) - 1},
            else: {0, Bitwise.bsl(1, bits) - 1}

        tensor = Ferrox.tensor([min, 1, max], type: type)
        assert inspect(tensor) =~ "[#{min}, 1, #{max}]"
      end
    end

    test "that no float is" do
      for type <- [f: 8, f: 16, bf: 16, f: 32, f: 64] do
        tensor = Ferrox.tensor([:infinity, :neg_infinity, :nan, -0.0], type: type)
        assert inspect(tensor) =~ "[Inf, -Inf, NaN, -0.0]"
      end

      assert texts(<<0x7F, 0xFF, 0x7E, 0xFE, 0x80>>, {:f8_e4m3fn, 8}) ==
               ["NaN", "NaN", "450.0", "-450.0", "-0.0"]
    end

    test "that are complex" do
      tensor =
        Ferrox.tensor([
          Ferrox.Complex.new(1, 2),
          Ferrox.Complex.new(0.1, -1.5),
          Ferrox.Complex.new(:nan, :neg_infinity),
          Ferrox.Complex.new(-0.0, 1.0e10)
        ])

      assert inspect(tensor) =~ "[1.0+2.0i, 0.1-1.5i, NaN-Infi, -0.0+1e10i]"

      assert inspect(Ferrox.as_type(tensor, :c128)) =~
               "[1.0+2.0i, 0.10000000149011612-1.5i, NaN-Infi, -0.0+1.0e10i]"
    end

    test "of f64 are written as Elixir writes floats" do
      floats = [0.1, 1.0e10, 1.0e22, 123_456_789.0, 1.0e-5, 5.0e-324, 1.7976931348623157e308]

      assert inspect(Ferrox.tensor(floats, type: :f64)) =~
               Enum.map_join(floats, ", ", &Float.to_string/1)
    end

    # As Nx 0.13.1 prints them.
    test "of f32 are plain where that is not longer" do
      for {float, text} <- [
            {0.1, "0.1"},
            {-0.5, "-0.5"},
            {1.0e7, "1e7"},
            {1.2e7, "1.2e7"},
            {123_456_789.0, "123456790.0"},
            {1.0e5, "1e5"},
            {1.0e4, "1e4"},
            {100.0, "100.0"},
            {1000.0, "1e3"},
            {12_000.0, "1.2e4"},
            {12_340.0, "12340.0"},
            {16_777_216.0, "16777216.0"},
            {3.4e38, "3.4e38"},
            {0.001, "0.001"},
            {1.0e-4, "1e-4"},
            {1.234e-4, "1.234e-4"},
            {0.0123, "0.0123"},
            {1.0e-45, "1e-45"},
            {1.17549435e-38, "1.1754944e-38"},
            {3.4028234663852886e38, "3.4028235e38"}
          ] do
        assert inspect(Ferrox.tensor(float)) =~ "\n  #{text}\n"
      end
    end

    test "read back as the same value of their type" do
      for {type, data} <- [{{:f, 32}, some_f32()} | Enum.map(@narrow, &{&1, every(&1)})] do
        read = data |> texts(type) |> Enum.map(&number/1) |> Ferrox.tensor(type: type)
        values = Ferrox.from_binary(data, type)

        # NaN has many bits.
        nan = Ferrox.is_nan(values)
        assert Ferrox.select(nan, 0, read).data == Ferrox.select(nan, 0, values).data
        assert Ferrox.is_nan(read).data == nan.data
      end
    end

    test "are the shortest that do" do
      for {type, data} <- [{{:f, 32}, some_f32()} | Enum.map(@narrow, &{&1, every(&1)})] do
        {_, bits} = type
        elements = for <<element::bitstring-bound_size(bits) <- data>>, do: element

        # The decimals of one digit less below and above each.
        shorter =
          for {element, text} <- Enum.zip(elements, texts(data, type)),
              text =~ ~r/^\d/ and text != "0.0",
              {digits, place} = digits(text),
              digits > 9,
              candidate <- [div(digits, 10), div(digits, 10) + 1],
              number = number("#{candidate}.0e#{place + 1}"),
              # Casts to f8_e4m3fn saturate, but no decimal past this is read.
              type != {:f8_e4m3fn, 8} or number < 464 do
            {element, <<number::float-64-native>>}
          end

        {elements, candidates} = Enum.unzip(shorter)
        from = &Ferrox.from_binary(IO.iodata_to_binary(&1), &2)
        read = candidates |> from.({:f, 64}) |> Ferrox.as_type(type)
        assert Ferrox.to_number(Ferrox.any(Ferrox.equal(read, from.(elements, type)))) == 0
      end
    end

    # Nx 0.13.1 prints "6.149069e10", which reads back as its neighbour.
    test "of f32 read back where Nx's do not" do
      assert inspect(Ferrox.tensor(61_490_692_096.0)) =~ "\n  6.1490692e10\n"
    end

    @tag :nx
    test "are those of Nx" do
      # Earlier releases print narrow floats with the digits of an f64.
      if Version.match?(to_string(Application.spec(:nx, :vsn)), ">= 0.13.0-dev") do
        for {type, data} <- [{{:f, 32}, some_f32()} | Enum.map(@narrow, &{&1, every(&1)})] do
          {_, bits} = type
          ours = texts(data, type)
          nx = apply(Nx, :from_binary, [data, type, [backend: Nx.BinaryBackend]])

          [list] =
            Regex.run(~r/\n  \[(.*)\]\n/, inspect(nx, limit: :infinity), capture: :all_but_first)

          for {ours, nx, at} <- Enum.zip([ours, String.split(list, ", "), 0..length(ours)]),
              ours != nx do
            element = binary_part(data, at * div(bits, 8), div(bits, 8))
            # Only what reads back wrong or could be shorter may differ.
            assert Ferrox.tensor(number(nx), type: type).data != element or
                     byte_size(nx) > byte_size(ours)
          end
        end
      end
    end
  end
end
