exclude =
  for {module, application} <- [{Nx, :nx}, {Explorer, :explorer}],
      not match?({:ok, _}, Application.ensure_all_started(application)) do
    IO.puts(
      "#{inspect(module)} isn't on the code path: the tests tagged :#{application} are left out"
    )

    application
  end

ExUnit.start(exclude: exclude)
