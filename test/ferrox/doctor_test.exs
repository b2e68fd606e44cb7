defmodule Ferrox.DoctorTest do
  use ExUnit.Case, async: true

  alias Ferrox.Doctor
  alias Ferrox.Doctor.SelfTest

  @well %{
    ferrox: "0.1.0",
    library:
      {:ok,
       %{
         version: "0.1.0",
         instructions: "x86-64-v3 (AVX2)",
         threads: 4,
         machine_code: "used",
         debug?: false
       }},
    library_path: "/app/priv/native/ferrox_nif.so",
    library_bytes: 15_900_000,
    precompiled?: false,
    cores: 4,
    schedulers: 4,
    configured_threads: nil,
    nx: %{version: "0.13.1", path: "/app/deps/nx", known?: true, error: nil},
    backend: Ferrox.Backend,
    compiler: Ferrox,
    self_test: [{"elementwise", :ok}, {"sorts", :ok}],
    self_test_us: 412_345,
    rebuild: "mix rebuild",
    cargo?: true
  }

  defp library(changes) do
    {:ok, library} = @well.library
    %{library: {:ok, Map.merge(library, changes)}}
  end

  test "nothing is wrong" do
    assert Doctor.problems(@well) == []
    lines = Doctor.lines(@well, [])

    for line <- [
          "Ferrox     0.1.0",
          "Library    0.1.0, built by cargo, 15.9 MB: /app/priv/native/ferrox_nif.so",
          "Processor  x86-64-v3 (AVX2) and machine code, 4 cores, 4 schedulers, 4 threads",
          "Nx         0.13.1: /app/deps/nx",
          "Backend    Ferrox.Backend",
          "Compiler   Ferrox",
          "Self-test  all 2 families right, in 0.4 s",
          "Nothing is wrong."
        ] do
      assert line in lines
    end

    assert Enum.any?(lines, &(&1 =~ ~r"^Elixir     .* on Erlang/OTP \d+, ERTS .* JIT$"))
    assert Enum.any?(lines, &(&1 =~ ~r"^System     \S+ .*, \S+$"))
  end

  test "a library from a release is called precompiled" do
    lines = Doctor.lines(%{@well | precompiled?: true}, [])
    assert "Library    0.1.0, precompiled, 15.9 MB: /app/priv/native/ferrox_nif.so" in lines
  end

  test "without Nx, there is no default backend" do
    facts = %{@well | nx: nil, backend: nil, compiler: nil}
    assert Doctor.problems(facts) == []
    lines = Doctor.lines(facts, [])
    assert "Nx         none, which Ferrox's own API doesn't need" in lines
    refute Enum.any?(lines, &(&1 =~ ~r/^(Backend|Compiler)/))
  end

  test "each problem is a line that says what to do" do
    for {kind, words, changes} <- [
          {:broken, "there is no native library: mix rebuild builds it",
           %{library: {:error, "no file"}, library_bytes: nil}},
          {:broken, "cargo, which isn't on the PATH: install Rust",
           %{library: {:error, "no file"}, library_bytes: nil, cargo?: false}},
          {:broken, "can't be loaded: wrong ELF class: mix rebuild",
           %{library: {:error, "wrong\nELF class"}}},
          {:broken, "version `GLIBC_2.34' not found: FERROX_BUILD=1 mix rebuild",
           %{library: {:error, "version `GLIBC_2.34' not found"}, precompiled?: true}},
          {:broken, "older than Ferrox 0.1.0: mix rebuild", %{library: {:ok, :unknown}}},
          {:broken, "is of version 0.0.9, and Ferrox of 0.1.0: mix rebuild",
           library(%{version: "0.0.9"})},
          {:note, "without optimizations, and is slow: mix rebuild", library(%{debug?: true})},
          {:note, "the system refuses memory for machine code",
           library(%{machine_code: "refused"})},
          {:note, "interpreted: take config :ferrox, machine_code: false away",
           library(%{machine_code: "off"})},
          {:note, "use 1 of 4 schedulers: take config :ferrox, threads: 1 away",
           Map.put(library(%{threads: 1}), :configured_threads, 1)},
          {:note, "threads: 300 is not in use, but 4", %{configured_threads: 300}},
          {:note, "more threads than cores (4 for 2): set config :ferrox, threads: 2",
           %{cores: 2}},
          {:note, "4 schedulers on 8 cores: start it without +S", %{cores: 8}},
          {:broken, "compiled without Nx, which is there now: mix rebuild",
           %{nx: %{@well.nx | known?: false}}},
          {:broken, "Nx can't be started: its application complex is missing",
           %{nx: %{@well.nx | error: {:error, {:complex, :enoent}}}, backend: nil, compiler: nil}},
          {:note, "for Nx 0.9.2 to 0.13, not 0.8.0", %{nx: %{@well.nx | version: "0.8.0"}}},
          {:note, "default backend is Nx.BinaryBackend: set config :nx, default_backend:",
           %{backend: Nx.BinaryBackend}},
          {:note, "compiler of defn is EXLA: set config :nx, default_defn_options:",
           %{compiler: EXLA}},
          {:broken, "self-test of sorts: sort gave 1, and not 2: report this",
           %{self_test: [{"elementwise", :ok}, {"sorts", {:wrong, "sort gave 1, and not 2"}}]}}
        ] do
      facts = Map.merge(@well, changes)
      assert [{^kind, text}] = problems = Doctor.problems(facts)
      assert text =~ words
      refute text =~ "\n"
      assert "#{kind}: #{text}" in Doctor.lines(facts, problems)
      refute "Nothing is wrong." in Doctor.lines(facts, problems)
    end

    facts = Map.merge(@well, %{backend: Nx.BinaryBackend, library: {:ok, :unknown}})
    assert [broken: _, note: _] = Doctor.problems(facts)
    facts = %{@well | self_test: [{"elementwise", :ok}, {"sorts", {:wrong, "1"}}]}
    assert "Self-test  WRONG: sorts; 1 of 2 families right" in Doctor.lines(facts, [])
  end

  test "a library that can't be loaded is found out" do
    assert {:ok, %{threads: threads, debug?: false}} = Doctor.facts("mix rebuild").library
    assert threads >= 1

    root = Path.join(System.tmp_dir!(), "ferrox_doctor_test_#{System.pid()}")
    ebin = Path.join(root, "ferrox/ebin")
    File.mkdir_p!(Path.dirname(ebin))
    on_exit(fn -> File.rm_rf!(root) end)
    File.cp_r!(Application.app_dir(:ferrox, "ebin"), ebin)

    examine = """
    facts = Ferrox.Doctor.facts("mix rebuild")
    Enum.each(Ferrox.Doctor.lines(facts, Ferrox.Doctor.problems(facts)), &IO.puts/1)
    """

    run = fn ->
      {text, 0} = System.cmd("elixir", ["-pa", ebin, "-e", examine], stderr_to_stdout: true)
      text
    end

    text = run.()
    assert text =~ ~r/^Library    none at /m
    assert text =~ ~r/^Self-test  not run, without a library$/m
    assert text =~ ~r/^broken: there is no native library: mix rebuild builds it/m
    refute text =~ "on_load"

    native = Path.join(root, "ferrox/priv/native")
    File.mkdir_p!(native)
    File.write!(Path.join(native, "ferrox_nif.so"), "not a library")
    File.write!(Path.join(native, "ferrox_nif.dll"), "not a library")
    text = run.()
    assert text =~ ~r/^Library    not loaded, built by cargo, 0.0 MB: /m
    assert text =~ ~r/^broken: the native library can't be loaded: .*: mix rebuild$/m

    File.write!(Path.join(native, "origin"), "libferrox_nif-v0.1.0.so.tar.gz")
    text = run.()
    assert text =~ ~r/^Library    not loaded, precompiled, 0.0 MB: /m
    assert text =~ ~r/^broken: the native .*: FERROX_BUILD=1 mix rebuild$/m
  end

  test "machine code is off where it is configured so" do
    code = """
    Application.load(:ferrox)
    {:ok, library} = Ferrox.Doctor.facts("mix rebuild").library
    IO.write(library.machine_code)
    """

    ebin = Application.app_dir(:ferrox, "ebin")

    run = fn options ->
      arguments = ["-pa", ebin | options] ++ ["-e", code]
      {text, 0} = System.cmd("elixir", arguments, stderr_to_stdout: true)
      text
    end

    here = run.([])
    assert here in ["used", "refused", "unsupported"]
    off = if here == "unsupported", do: here, else: "off"
    assert run.(["--erl", "-ferrox machine_code false"]) == off
    text = run.(["--erl", "-ferrox machine_code 1"])

    assert text =~
             "config :ferrox, :machine_code must be true or false, got: 1; going on with true"

    assert text =~ ~r/#{here}$/
  end

  test "FERROX_INSTRUCTION_SET limits what loops run with" do
    code = """
    {:ok, library} = Ferrox.Doctor.facts("mix rebuild").library
    IO.write(library.instructions)
    """

    run = fn name ->
      arguments = ["-pa", Application.app_dir(:ferrox, "ebin"), "-e", code]
      env = [{"FERROX_INSTRUCTION_SET", name}]
      {text, 0} = System.cmd("elixir", arguments, env: env, stderr_to_stdout: true)
      text
    end

    here = run.(nil)
    x86? = here =~ "x86-64"
    assert run.("x86-64") == if(x86?, do: "x86-64 (SSE2)", else: here)
    assert run.("x86-64-v4") == here

    names = "x86-64, x86-64-v3, x86-64-v4"
    assert run.("avx") =~ ~r/^FERROX_INSTRUCTION_SET must be one of #{names}, got: avx; /
    assert String.ends_with?(run.("avx"), here)
  end

  test "the self-test passes here, and says what is wrong elsewhere" do
    programs? = Code.ensure_loaded?(Nx)
    verdicts = SelfTest.run(programs?)
    assert length(verdicts) == if(programs?, do: 12, else: 11)
    for {family, verdict} <- verdicts, do: assert({family, verdict} == {family, :ok})

    assert SelfTest.judge(fn -> [{"a", 1, 1}, {"b", [1.0, 2.0], [1.0, 2.0 + 1.0e-14]}] end) == :ok

    assert SelfTest.judge(fn -> [{"a", 1, 1}, {"b", [1.0, 2.0], [1.0, 2.1]}] end) ==
             {:wrong, "b gave [1.0, 2.0], and not [1.0, 2.1]"}

    assert {:wrong, _} = SelfTest.judge(fn -> [{"a", [1.0], [1.0, 2.0]}] end)
    assert {:wrong, _} = SelfTest.judge(fn -> [{"a", [1.0, :nan], [1.0, 2.0]}] end)
    assert SelfTest.judge(fn -> raise "one\ntwo" end) == {:wrong, "one"}
  end
end
