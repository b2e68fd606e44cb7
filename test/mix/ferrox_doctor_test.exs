defmodule Mix.Tasks.Ferrox.DoctorTest do
  use ExUnit.Case, async: true

  import ExUnit.CaptureIO

  alias Mix.Tasks.Ferrox.Doctor

  test "prints a screen" do
    text = capture_io(fn -> Doctor.run([]) end)
    assert text =~ ~r/^Library    .*\nProcessor  .*\nNx         /m
    assert text =~ ~r/^Self-test  all 1[12] families right, in /m
    refute text =~ ~r/^broken/m
    assert length(String.split(text, "\n")) <= 24
  end

  test "takes no arguments" do
    text =
      capture_io(:stderr, fn -> assert catch_exit(Doctor.run(["--what"])) == {:shutdown, 1} end)

    assert text == "mix ferrox.doctor takes no arguments, got: --what\n"
  end
end
