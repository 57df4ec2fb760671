# The castle died after it had written its keys.
story "A key that is in the vault already" {
  told = "The kubeconfig of the last attempt was still in the vault, so that the next one was refused: 400, the secret exists already. Since then it was imported before each run, in case it was there."
  from = ["D 15", "001_d31ab16b0c48f553.txt"]

  run "up" {
    break = ["castle: killed after on PATCH /secrets/batch the 2nd"]
    exit  = 137
  }
  run "up" {
    says  = ["adopt ways in kept in https://eu.infisical.com"]
    hides = ["already exists"]
    fails = []
  }
  world {
    vault      = ["TALOS_SECRETS_BUNDLE", "KUBECONFIG_CONTENT", "TALOSCONFIG_CONTENT"]
    bootstraps = 1
  }
}
