import Config

# Doctests compare tensors as Nx prints them, without the line that names the
# backend.
config :ferrox, :add_backend_on_inspect, config_env() != :test
