buildozer_binary = module_extension(implementation = lambda _: None)
