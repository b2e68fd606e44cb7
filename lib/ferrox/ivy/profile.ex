defmodule Ferrox.Ivy.Profile do
  @moduledoc since: "0.1.0"
  @moduledoc """
  The profile of a backend: a version of a library, with its data types and devices.

  Ivy's `set_backend` replaces types and lists in Ivy's own module. Here, a backend is a struct, and
  functions take the backend as an argument. Without the argument, they use the backend that
  `with_backend/2` has set for the process, else the one in the application's configuration:

      config :ferrox, ivy: [backend: {:torch, "2.2"}]

  The backends are `:numpy`, `:torch`, `:jax`, `:tensorflow`, `:paddle` and `:mxnet`, with the data
  types that Ivy 1.0.0.5 lists for them, and `:ferrox`, with the data types that its kernels support.
  A backend without a version has the latest version that Ivy knows. `nil` stands for no backend:
  every data type is valid.

      iex> Ferrox.Ivy.Profile.fetch_dtype(:torch, "uint16")
      :error
      iex> Ferrox.Ivy.Profile.fetch_dtype(:jax, "uint16")
      {:ok, {:u, 16}}
      iex> Ferrox.Ivy.Profile.with_backend(:torch, fn -> Ferrox.Ivy.Profile.fetch_dtype("uint16") end)
      :error

  """

  alias Ferrox.Ivy.{Dtype, Kernels, Scope, Version}

  @enforce_keys [:name, :version]
  defstruct [:name, :version, valid: %{}, invalid: %{}, closest: %{}, valid_devices: []]

  @typedoc """
  A profile. `valid` and `invalid` have a list of types for each class. `closest` maps an invalid type
  to the type that the backend uses instead.
  """
  @type t :: %__MODULE__{
          name: atom,
          version: String.t(),
          valid: %{Dtype.class() => [Dtype.t()]},
          invalid: %{Dtype.class() => [Dtype.t()]},
          closest: %{Dtype.t() => Dtype.t()},
          valid_devices: [device]
        }

  @typedoc "A device."
  @type device :: :cpu | :gpu | :tpu

  @typedoc "A backend's name, its name and version, its profile, or nil for none."
  @type backend :: atom | {atom, String.t()} | t | nil

  @all_devices [:cpu, :gpu, :tpu]

  wide_uints = [u: 16, u: 32, u: 64]

  # The invalid types by version, and the lists that can't be derived from them.
  @backends [
    ferrox: %{devices: [:cpu]},
    numpy: %{
      version: "1.26.3",
      invalid: [{"1.26.3 and below", [bf: 16]}],
      closest: %{{:bf, 16} => {:f, 16}},
      devices: [:cpu]
    },
    torch: %{
      version: "2.2",
      invalid: [{"2.2 and below", wide_uints}],
      closest: Map.new(wide_uints, &{&1, {:u, 8}}),
      devices: [:cpu, :gpu]
    },
    jax: %{version: "0.4.25", invalid: [{"0.4.25 and below", []}], devices: [:cpu, :gpu]},
    tensorflow: %{version: "2.15.0", invalid: [{"2.15.0 and below", []}], devices: [:cpu, :gpu]},
    paddle: %{
      version: "2.6.0",
      invalid: [{"2.4.2 and below", wide_uints ++ [bf: 16]}, {"2.5.0 and above", wide_uints}],
      closest: wide_uints |> Map.new(&{&1, {:u, 8}}) |> Map.put({:bf, 16}, {:f, 16}),
      # Ivy lists bool among the valid numeric types.
      extra_numeric: [:bool],
      devices: [:cpu, :gpu]
    },
    # For mxnet, Ivy lists bfloat16 among the valid types, but not among the valid floats, and lists
    # the complex types neither among the valid nor among the invalid types.
    mxnet: %{
      version: "1.9.1",
      invalid: [{"1.9.1 and below", [s: 16, u: 16, u: 32, u: 64]}],
      neither: [c: 64, c: 128],
      valid_class: %{
        numeric: [s: 8, s: 32, s: 64, u: 8, f: 16, f: 32, f: 64],
        float: [f: 16, f: 32, f: 64]
      },
      invalid_class: %{float: [bf: 16], complex: [c: 64, c: 128]},
      devices: [:cpu, :gpu]
    }
  ]

  @doc """
  Returns the names of the backends.

  ## Examples

      iex> Ferrox.Ivy.Profile.backends()
      [:ferrox, :numpy, :torch, :jax, :tensorflow, :paddle, :mxnet]

  """
  @spec backends() :: [atom]
  def backends, do: unquote(Keyword.keys(@backends))

  @doc """
  Returns all devices, including those that a backend doesn't have: Ivy's `all_devices`.

  ## Examples

      iex> Ferrox.Ivy.Profile.all_devices()
      [:cpu, :gpu, :tpu]

  """
  @spec all_devices() :: [device]
  def all_devices, do: @all_devices

  @doc """
  Returns the profile of a backend, by default of the one in effect, or nil for no backend.

  ## Examples

      iex> Ferrox.Ivy.Profile.fetch!({:paddle, "2.4.2"}).invalid.float
      [{:bf, 16}]
      iex> Ferrox.Ivy.Profile.fetch!({:paddle, "2.5.1"}).invalid.float
      []
      iex> Ferrox.Ivy.Profile.fetch!()
      nil

      iex> Ferrox.Ivy.Profile.fetch!(:cupy)
      ** (ArgumentError) unknown backend :cupy, expected one of :ferrox, :numpy, :torch, :jax, :tensorflow, :paddle, :mxnet, {name, version}, or nil for none

  """
  @spec fetch!(backend) :: t | nil
  def fetch!(backend \\ current())
  def fetch!(nil), do: nil
  def fetch!(%__MODULE__{} = profile), do: profile
  def fetch!(:ferrox), do: fetch!({:ferrox, to_string(Application.spec(:ferrox, :vsn))})
  def fetch!(name) when is_atom(name), do: fetch!({name, @backends[name][:version] || ""})

  def fetch!({name, version}) when is_atom(name) and is_binary(version),
    do: profile(name, version, @backends[name] || raise_unknown!(name))

  def fetch!(other), do: raise_unknown!(other)

  @doc """
  Returns the profile of the backend in effect, or nil if there is none: Ivy's
  `current_backend_str`.

  ## Examples

      iex> Ferrox.Ivy.Profile.with_backend(:torch, &Ferrox.Ivy.Profile.current/0).version
      "2.2"

  """
  @spec current() :: t | nil
  def current, do: Scope.get(:backend, &fetch!/1)

  @doc """
  Runs the function while a backend is in effect for the calling process.

  The previous backend is restored at the end, also if the function raises.

  ## Examples

      iex> Ferrox.Ivy.Profile.with_backend(:torch, fn -> Ferrox.Ivy.invalid_dtypes() end)
      [{:u, 16}, {:u, 32}, {:u, 64}]
      iex> Ferrox.Ivy.invalid_dtypes()
      []

  """
  @spec with_backend(backend, fun) :: term
  def with_backend(backend, fun), do: Scope.run(:backend, fetch!(backend), fun)

  @doc """
  Pushes a backend on the stack of the calling process. `unset_backend/0` removes it.

  ## Examples

      iex> Ferrox.Ivy.Profile.set_backend(:numpy)
      iex> Ferrox.Ivy.Profile.current().name
      :numpy
      iex> Ferrox.Ivy.Profile.unset_backend()
      iex> Ferrox.Ivy.Profile.current()
      nil

  """
  @spec set_backend(backend) :: :ok
  def set_backend(backend), do: Scope.push(:backend, fetch!(backend))

  @doc """
  Removes the last backend from the stack of the calling process. Does nothing if the stack is empty.

  ## Examples

      iex> Ferrox.Ivy.Profile.unset_backend()
      :ok

  """
  @spec unset_backend() :: :ok
  def unset_backend, do: Scope.pop(:backend)

  @doc """
  Returns the data type with a name, or `:error` if the backend doesn't have it. Ivy removes the
  names of such types from its module.

  ## Examples

      iex> Ferrox.Ivy.Profile.fetch_dtype(:numpy, "bfloat16")
      :error
      iex> Ferrox.Ivy.Profile.fetch_dtype(:numpy, :f16)
      {:ok, {:f, 16}}
      iex> Ferrox.Ivy.Profile.fetch_dtype(:numpy, "int7")
      :error

  """
  @spec fetch_dtype(backend, Dtype.name()) :: {:ok, Dtype.t()} | :error
  def fetch_dtype(backend \\ current(), name) do
    valid = valid(backend)
    type = Dtype.parse(name)
    if type in valid, do: {:ok, type}, else: :error
  end

  @doc """
  Returns the valid types of a class, or all types of the class without a backend.

  ## Examples

      iex> Ferrox.Ivy.Profile.valid(:torch, :uint)
      [{:u, 8}]

  """
  @spec valid(backend, Dtype.class()) :: [Dtype.t()]
  def valid(backend, class \\ :all) do
    all = Dtype.all(class)
    profile = fetch!(backend)
    if profile, do: profile.valid[class], else: all
  end

  @doc """
  Returns the invalid types of a class, or none without a backend.

  ## Examples

      iex> Ferrox.Ivy.Profile.invalid(:numpy, :float)
      [{:bf, 16}]
      iex> Ferrox.Ivy.Profile.invalid(nil, :float)
      []

      iex> Ferrox.Ivy.Profile.invalid(:numpy, :floats)
      ** (ArgumentError) unknown class of data types :floats, expected one of :all, :numeric, :int, :uint, :float, :complex

  """
  @spec invalid(backend, Dtype.class()) :: [Dtype.t()]
  def invalid(backend, class \\ :all) do
    # Raises for an unknown class.
    Dtype.all(class)
    profile = fetch!(backend)
    if profile, do: profile.invalid[class], else: []
  end

  @doc """
  Returns the devices of a backend: Ivy's `valid_devices`.

  ## Examples

      iex> Ferrox.Ivy.Profile.valid_devices(:torch)
      [:cpu, :gpu]
      iex> Ferrox.Ivy.Profile.valid_devices(:ferrox)
      [:cpu]

  """
  @spec valid_devices(backend) :: [device]
  def valid_devices(backend \\ current()) do
    profile = fetch!(backend)
    if profile, do: profile.valid_devices, else: [:cpu, :gpu]
  end

  @doc """
  Returns the devices that a backend doesn't have: Ivy's `invalid_devices`.

  ## Examples

      iex> Ferrox.Ivy.Profile.invalid_devices(:numpy)
      [:gpu, :tpu]

  """
  @spec invalid_devices(backend) :: [device]
  def invalid_devices(backend \\ current()), do: @all_devices -- valid_devices(backend)

  @doc """
  Returns the backend's own name of a data type: Ivy's `native_float32` and similar names. Without a
  backend, it is Ivy's name. For the backend `:ferrox`, it is the tuple.

  ## Examples

      iex> for backend <- [nil, :torch, :jax, :ferrox], do: Ferrox.Ivy.Profile.native_dtype(backend, "float32")
      ["float32", "torch.float32", "jax.numpy.float32", {:f, 32}]

      iex> Ferrox.Ivy.Profile.native_dtype(:torch, "uint16")
      ** (ArgumentError) torch 2.2 has no data type uint16, only int8, int16, int32, int64, uint8, bfloat16, float16, float32, float64, complex64, complex128, bool

  """
  @spec native_dtype(backend, Dtype.name()) :: String.t() | Dtype.t()
  def native_dtype(backend \\ current(), type) do
    profile = fetch!(backend)
    type = Dtype.known!(type)
    check!(profile, type)

    case profile && profile.name do
      nil -> Dtype.name(type)
      :ferrox -> type
      :jax -> "jax.numpy." <> Dtype.name(type)
      library -> "#{library}." <> Dtype.name(type)
    end
  end

  # Returns the type, or raises if the backend doesn't have it.
  @doc false
  @spec check!(t | nil, Dtype.t()) :: Dtype.t()
  def check!(profile, type) do
    unless profile == nil or type in profile.valid.all do
      raise ArgumentError,
            "#{profile.name} #{profile.version} has no data type #{Dtype.name(type)}, only " <>
              Enum.map_join(profile.valid.all, ", ", &Dtype.name/1)
    end

    type
  end

  defp profile(name, version, data) do
    invalid =
      if name == :ferrox,
        do: Enum.reject(Dtype.all(), &Kernels.supports?(:as_type, &1)),
        else: Version.resolve(data.invalid, version)

    missing = invalid ++ Map.get(data, :neither, [])

    valid = fn class ->
      extra = if class == :numeric, do: Map.get(data, :extra_numeric, []), else: []
      data[:valid_class][class] || (Dtype.all(class) ++ extra) -- missing
    end

    invalid = fn class ->
      data[:invalid_class][class] || Enum.filter(Dtype.all(class), &(&1 in invalid))
    end

    %__MODULE__{
      name: name,
      version: version,
      valid: Map.new(Dtype.classes(), &{&1, valid.(&1)}),
      invalid: Map.new(Dtype.classes(), &{&1, invalid.(&1)}),
      closest: Map.get(data, :closest, %{}),
      valid_devices: data.devices
    }
  end

  @spec raise_unknown!(term) :: no_return
  defp raise_unknown!(other) do
    raise ArgumentError,
          "unknown backend #{inspect(other)}, expected one of " <>
            Enum.map_join(backends(), ", ", &inspect/1) <> ", {name, version}, or nil for none"
  end
end
