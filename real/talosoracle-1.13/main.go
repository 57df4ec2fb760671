// talosoracle: reference answers from Talos' own pkg/machinery (no talosctl).
// The same text in talosoracle-1.13 and -1.14; what the two versions name differently is in version.go.
//
//	talosoracle secrets OUT                                new secrets bundle
//	talosoracle bundle SECRETS                             reads a bundle, validates it, writes it to stdout
//	talosoracle gen [option...] SECRETS CLUSTER ENDPOINT DIR   controlplane.yaml worker.yaml talosconfig
//	talosoracle talosconfig FILE                           its contexts, as JSON; the certificate is verified by its CA
//	talosoracle validate MODE FILE...                      MODE = metal|cloud|container
//	talosoracle patch FILE PATCH...                        strategic merge / RFC 6902, result on stdout
//	talosoracle version TALOSCONFIG NODE                   real API client (endpoint is in TALOSCONFIG)
//	talosoracle maint-version HOST:PORT                    same without client certificate (--insecure)
//
// Options of gen, before the other words; those marked * may be given several times:
//
//	-kubernetes 1.36.3        Kubernetes version (the machinery's default)
//	-contract 1.13            version contract (the machinery's own)
//	-install-disk /dev/sda    empty: no install section or document
//	-install-image REF        installer image
//	-san NAME *               additional subject alternative name
//	-endpoint ADDRESS *       endpoint in the talosconfig
//	-role os:reader *         role of the talosconfig's certificate (os:admin)
//	-dns-domain NAME          domain of the cluster
//	-cni none|URL             none only where the version has it
//	-mirror HOST=URL *        registry mirror
//	-sysctl KEY=VALUE *       kernel parameter
//	-kernel-arg ARG *         kernel argument of the installer
//	-discovery=false          no discovery service
//	-schedule                 workloads on control planes
//	-kubeprism PORT           0: off
//	-api-port PORT            port of the local API server
//	-forward-kube-dns=BOOL    forward the cluster's name server to the host's
//	-debug                    debug: true
package main

import (
	"context"
	"crypto/tls"
	stdx509 "crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/validation"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"github.com/siderolabs/talos/pkg/machinery/version"
	"go.yaml.in/yaml/v4"
)

type mode string // as internal/app/machined/pkg/runtime.Mode

func (m mode) String() string        { return string(m) }
func (m mode) RequiresInstall() bool { return m == "metal" }
func (m mode) InContainer() bool     { return m == "container" }

// several is an option that may be given more than once.
type several []string

func (s *several) String() string     { return strings.Join(*s, ",") }
func (s *several) Set(v string) error { *s = append(*s, v); return nil }

func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func main() {
	a := os.Args[1:]
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	switch {
	case len(a) == 2 && a[0] == "secrets":
		check(os.WriteFile(a[1], must(yaml.Marshal(must(secrets.NewBundle(secrets.NewClock(), nil)))), 0o600))
	case len(a) == 2 && a[0] == "bundle":
		b := must(secrets.LoadBundle(a[1]))
		check(validBundle(b))
		os.Stdout.Write(must(yaml.Marshal(b)))
	case len(a) >= 5 && a[0] == "gen":
		gen(a[1:])
	case len(a) == 2 && a[0] == "talosconfig":
		os.Stdout.Write(must(json.MarshalIndent(talosconfig(a[1]), "", "  ")))
	case len(a) >= 3 && a[0] == "validate":
		validate(mode(a[1]), a[2:])
	case len(a) >= 3 && a[0] == "patch":
		p := make([]string, 0, len(a)-2)
		for _, f := range a[2:] {
			p = append(p, string(must(os.ReadFile(f))))
		}
		out := must(configpatcher.Apply(configpatcher.WithBytes(must(os.ReadFile(a[1]))), must(configpatcher.LoadPatches(p))))
		os.Stdout.Write(must(out.Bytes()))
	case len(a) == 3 && a[0] == "version":
		c := must(client.New(ctx, client.WithConfigFromFile(a[1]), client.WithDefaultGRPCDialOptions()))
		fmt.Println(must(c.Version(client.WithNodes(ctx, a[2]))))
	case len(a) == 2 && a[0] == "maint-version":
		c := must(client.New(ctx, client.WithTLSConfig(&tls.Config{InsecureSkipVerify: true}), client.WithEndpoints(a[1])))
		fmt.Println(must(c.Version(ctx)))
	default:
		fmt.Fprintln(os.Stderr, "usage: see the head of main.go")
		os.Exit(2)
	}
}

// gen writes the configs and the talosconfig that Talos' own generator makes.
func gen(words []string) {
	f := flag.NewFlagSet("gen", flag.ExitOnError)
	kubernetes := f.String("kubernetes", constants.DefaultKubernetesVersion, "")
	contract := f.String("contract", "", "")
	disk := f.String("install-disk", "/dev/sda", "")
	image := f.String("install-image", "ghcr.io/siderolabs/installer:"+version.Tag, "")
	dnsDomain := f.String("dns-domain", "", "")
	cni := f.String("cni", "", "")
	discovery := f.Bool("discovery", true, "")
	schedule := f.Bool("schedule", false, "")
	kubePrism := f.Int("kubeprism", constants.DefaultKubePrismPort, "")
	apiPort := f.Int("api-port", 0, "")
	forward := f.String("forward-kube-dns", "", "")
	debug := f.Bool("debug", false, "")
	var sans, endpoints, roles, mirrors, sysctls, kernelArgs several
	f.Var(&sans, "san", "")
	f.Var(&endpoints, "endpoint", "")
	f.Var(&roles, "role", "")
	f.Var(&mirrors, "mirror", "")
	f.Var(&sysctls, "sysctl", "")
	f.Var(&kernelArgs, "kernel-arg", "")
	check(f.Parse(words))
	if f.NArg() != 4 {
		check(errors.New("gen: SECRETS CLUSTER ENDPOINT DIR after the options"))
	}

	options := []generate.Option{
		generate.WithSecretsBundle(must(secrets.LoadBundle(f.Arg(0)))),
		generate.WithInstallDisk(*disk),
		generate.WithInstallImage(*image),
		generate.WithClusterDiscovery(*discovery),
		generate.WithAllowSchedulingOnControlPlanes(*schedule),
		generate.WithKubePrismPort(*kubePrism),
		generate.WithDebug(*debug),
		generate.WithAdditionalSubjectAltNames(sans),
		generate.WithInstallExtraKernelArgs(kernelArgs),
		generate.WithEndpointList(endpoints),
	}
	if len(roles) > 0 {
		known, unknown := role.Parse(roles)
		if len(unknown) > 0 {
			check(fmt.Errorf("unknown roles: %v", unknown))
		}
		options = append(options, generate.WithRoles(known))
	}
	if *contract != "" {
		options = append(options, generate.WithVersionContract(must(config.ParseContractFromVersion(*contract))))
	}
	if *dnsDomain != "" {
		options = append(options, generate.WithDNSDomain(*dnsDomain))
	}
	if *apiPort != 0 {
		options = append(options, generate.WithLocalAPIServerPort(*apiPort))
	}
	if *forward != "" {
		options = append(options, generate.WithHostDNSForwardKubeDNSToHost(*forward == "true"))
	}
	if *cni != "" {
		options = append(options, must(withCNI(*cni)))
	}
	for _, m := range mirrors {
		host, url, _ := strings.Cut(m, "=")
		options = append(options, generate.WithRegistryMirror(host, url))
	}
	parameters := map[string]string{}
	for _, s := range sysctls {
		key, value, _ := strings.Cut(s, "=")
		parameters[key] = value
	}
	if len(parameters) > 0 {
		options = append(options, generate.WithSysctls(parameters))
	}

	in := must(generate.NewInput(f.Arg(1), f.Arg(2), *kubernetes, options...))
	for name, t := range map[string]machine.Type{"controlplane.yaml": machine.TypeControlPlane, "worker.yaml": machine.TypeWorker} {
		out := must(must(in.Config(t)).EncodeBytes(encoder.WithComments(encoder.CommentsDisabled)))
		check(os.WriteFile(filepath.Join(f.Arg(3), name), out, 0o600))
	}
	check(must(in.Talosconfig()).Save(filepath.Join(f.Arg(3), "talosconfig")))
}

// validate judges each file as a node of that mode would; the first error ends it.
func validate(m mode, files []string) {
	for _, file := range files {
		warnings, err := must(configloader.NewFromFile(file)).Validate(m, validation.WithLocal())
		for _, s := range warnings {
			fmt.Println("warning:", s)
		}
		check(err)
		fmt.Printf("%s is valid for %s mode\n", file, m)
	}
}

// identity is what a talosconfig says about one context.
type identity struct {
	Current   bool     `json:"current"`
	Endpoints []string `json:"endpoints"`
	Nodes     []string `json:"nodes"`
	Roles     []string `json:"roles"`
	NotAfter  string   `json:"notAfter"`
}

// talosconfig reads a talosconfig as Talos' client does, and proves each certificate by its CA and its key.
func talosconfig(file string) map[string]identity {
	c := must(clientconfig.Open(file))
	found := map[string]identity{}
	for name, one := range c.Contexts {
		ca, crt, key := must(base64.StdEncoding.DecodeString(one.CA)), must(base64.StdEncoding.DecodeString(one.Crt)), must(base64.StdEncoding.DecodeString(one.Key))
		roots := stdx509.NewCertPool()
		if !roots.AppendCertsFromPEM(ca) {
			check(errors.New("no CA certificate in context " + name))
		}
		block, _ := pem.Decode(crt)
		if block == nil {
			check(errors.New("no client certificate in context " + name))
		}
		leaf := must(stdx509.ParseCertificate(block.Bytes))
		must(leaf.Verify(stdx509.VerifyOptions{Roots: roots, KeyUsages: []stdx509.ExtKeyUsage{stdx509.ExtKeyUsageClientAuth}}))
		must(tls.X509KeyPair(crt, key))
		found[name] = identity{
			Current: name == c.Context, Endpoints: one.Endpoints, Nodes: one.Nodes,
			Roles: leaf.Subject.Organization, NotAfter: leaf.NotAfter.UTC().Format(time.RFC3339),
		}
	}
	return found
}
