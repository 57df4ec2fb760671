package main

import (
	"errors"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
)

// withCNI names a network plugin by its manifest. From 1.14 on the generator has no "none": there one deletes the document.
func withCNI(what string) (generate.Option, error) {
	if what == "none" {
		return nil, errors.New("this version generates no `cni: none`; delete KubeFlannelCNIConfig by a patch")
	}
	return generate.WithCustomCNIUrl(what), nil
}

// validBundle judges a bundle by the newest contract.
func validBundle(b *secrets.Bundle) error {
	return b.Validate(config.TalosVersionCurrent)
}
