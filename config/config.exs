import Config

# In tests, inspected tensors have no line with the name of the backend, because the doctests of Nx
# compare tensors without it.
config :ferrox, :add_backend_on_inspect, config_env() != :test
