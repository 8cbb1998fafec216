// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/shell"
)

// lossVerb is a sequence of words that destroys something: every word of one list must follow in order among the operands.
type lossVerb struct {
	words []string
	flags []string // one of them must be given; nil = none needed
	note  string
}

func verbs(note string, lists ...string) []lossVerb {
	var out []lossVerb
	for _, l := range lists {
		v := lossVerb{note: note}
		for _, w := range strings.Fields(l) {
			if strings.HasPrefix(w, "-") {
				v.flags = append(v.flags, w)
			} else {
				v.words = append(v.words, w)
			}
		}
		out = append(out, v)
	}
	return out
}

// infraVerbs says which sub-commands destroy things elsewhere. A word may hold alternatives, separated by |.
var infraVerbs = map[string][]lossVerb{
	"kubectl":   verbs("objects of a cluster are deleted", "delete", "drain", "replace --force"),
	"oc":        verbs("objects of a cluster are deleted", "delete", "drain", "adm drain"),
	"helm":      verbs("a release and its objects are deleted", "uninstall", "delete", "del", "un"),
	"terraform": verbs("managed infrastructure is changed or deleted", "destroy", "apply -destroy --destroy -auto-approve --auto-approve", "state rm", "workspace delete", "force-unlock"),
	"tofu":      verbs("managed infrastructure is changed or deleted", "destroy", "apply -destroy --destroy -auto-approve --auto-approve", "state rm", "workspace delete"),
	"terragrunt": verbs("managed infrastructure is changed or deleted", "destroy", "run-all destroy|apply", "destroy-all",
		"apply -auto-approve --auto-approve"),
	"pulumi": verbs("managed infrastructure is deleted", "destroy", "down", "stack rm"),
	"cdk":    verbs("stacks are deleted", "destroy"),
	"sls":    verbs("a service is removed", "remove"), "serverless": verbs("a service is removed", "remove"),
	"gcloud": verbs("cloud resources are deleted", "delete", "remove", "purge", "storage rm"),
	"gsutil": verbs("cloud objects are deleted", "rm", "rb", "rsync -d"),
	"bq":     verbs("cloud data is deleted", "rm"),
	"az":     verbs("cloud resources are deleted", "delete", "delete-batch", "purge"),
	"doctl":  verbs("cloud resources are deleted", "delete", "rm", "destroy"),
	"heroku": verbs("an application or its data is deleted", "apps:destroy", "pg:reset", "addons:destroy", "destroy", "pg:backups:delete"),
	"fly":    verbs("an application or its data is deleted", "apps destroy", "destroy", "volumes destroy|delete", "machine destroy"),
	"flyctl": verbs("an application or its data is deleted", "apps destroy", "destroy", "volumes destroy|delete", "machine destroy"),
	"vercel": verbs("a deployment is removed", "remove", "rm"), "netlify": verbs("a site is deleted", "sites:delete"),
	"wrangler":       verbs("a service or its data is deleted", "delete", "kv:namespace delete", "d1 delete", "r2 bucket delete"),
	"docker":         verbs("containers' data is deleted", "system prune", "volume rm|remove|prune", "compose down -v --volumes", "compose rm -v", "swarm leave", "stack rm", "service rm", "node rm", "secret rm", "rm -v --volumes"),
	"podman":         verbs("containers' data is deleted", "system prune|reset", "volume rm|remove|prune", "compose down -v --volumes", "pod rm", "rm -v --volumes"),
	"docker-compose": verbs("containers' data is deleted", "down -v --volumes", "rm -v"),
	"gh":             verbs("things of the hosted repository are deleted", "repo delete|archive", "release delete", "secret delete|remove", "variable delete", "workflow disable", "codespace delete", "gist delete", "issue delete", "label delete", "ruleset delete", "run delete", "cache delete", "project delete", "environment delete"),
	"glab":           verbs("things of the hosted repository are deleted", "repo delete", "release delete", "variable delete"),
	"vault":          verbs("secrets are deleted", "delete", "kv delete|destroy", "kv metadata delete", "kv destroy", "secrets disable", "namespace delete", "token revoke", "operator seal"),
	"consul":         verbs("keys are deleted", "kv delete"), "etcdctl": verbs("keys are deleted", "del"),
	"nomad": verbs("jobs are stopped", "job stop", "stop", "system gc"), "velero": verbs("backups are deleted", "delete"),
	"zfs": verbs("a file system is destroyed", "destroy", "rollback -r -R"), "zpool": verbs("a pool is destroyed", "destroy", "labelclear"),
	"lvremove": verbs("a volume is removed", ""), "vgremove": verbs("a volume group is removed", ""), "pvremove": verbs("a physical volume is removed", ""),
	"btrfs": verbs("a subvolume is deleted", "subvolume delete"),
	"mc":    verbs("cloud objects are deleted", "rm", "rb"), "rclone": verbs("remote files are deleted", "delete", "purge", "sync", "rmdirs", "cleanup", "move"),
	"s3cmd":  verbs("cloud objects are deleted", "del", "rm", "rb"),
	"eksctl": verbs("a cluster is deleted", "delete"), "kops": verbs("a cluster is deleted", "delete"), "kind": verbs("a local cluster is deleted", "delete"),
	"minikube": verbs("a local cluster is deleted", "delete"), "supabase": verbs("a database is reset", "db reset", "projects delete"),
	"vagrant": verbs("a machine and its data are deleted", "destroy", "box remove|prune", "snapshot delete"),
	"virsh":   verbs("a machine or its disk is deleted", "undefine", "vol-delete", "vol-wipe", "pool-delete", "snapshot-delete"),
	"k3d":     verbs("a local cluster is deleted", "cluster delete|rm", "node delete"),
	"railway": verbs("a service or its data is deleted", "down", "delete", "volume delete", "environment delete"),
	"stripe":  verbs("records of the payment service are deleted", "customers|products|coupons|plans|subscriptions|invoices|accounts|webhook_endpoints delete", "delete"),
	"cargo":   verbs("a published version is withdrawn", "yank"),
	"render":  verbs("a service is deleted", "services delete"), "neonctl": verbs("a database or a branch is deleted", "projects|branches|databases delete"),
	"pscale": verbs("a database or a branch is deleted", "database|branch delete"), "ibmcloud": verbs("cloud resources are deleted", "delete"),
	"linode-cli": verbs("cloud resources are deleted", "linodes|volumes|domains delete"), "hcloud": verbs("cloud resources are deleted", "server|volume|network|image delete"),
	"firebase": verbs("cloud data is deleted", "firestore:delete", "database:remove", "projects:delete", "functions:delete", "hosting:disable"),
}

// infraValueFlags are options whose value must not be taken for a verb.
var infraValueFlags = optSpec{short: "fnlcpHo", long: []string{"--file", "--namespace", "--context", "--kubeconfig", "--project", "--project-name", "--profile", "--region",
	"--output", "--selector", "--filter", "--query", "--cluster", "--zone", "--subscription", "--resource-group", "--env-file", "--project-directory", "--repo", "--host", "--endpoint-url", "--user", "--server", "--token", "--log-level", "--var-file", "--var"}}

func progInfra(x *evaluation, c *command) {
	spec := infraValueFlags
	if c.name == "docker" || c.name == "podman" || c.name == "rm" {
		spec.short = "pHl"
		if len(c.args) > 0 && c.args[0].Text == "compose" || c.name == "podman" {
			spec.short = "fpHcl"
		}
	}
	if c.name == "gh" || c.name == "glab" {
		spec.short, spec.long = "RXfFHqt", append(slices.Clone(spec.long), "--method")
	}
	x.infraRuns(c)
	x.infraFiles(c)
	p := parseArgs(c.args, spec)
	if p.has("--dry-run", "--dryrun", "--help") && !dryRunOff(&p) || slices.ContainsFunc(p.flags, func(f string) bool { return f == "-h" && c.name != "psql" }) {
		return
	}
	if len(p.operands) > 0 && !p.operands[0].Known && !p.operands[0].Flat {
		x.judgeUnknownVerb(c, c.name)
		return
	}
	flags := append([]string{}, p.flags...)
	for _, w := range c.args {
		flags = append(flags, w.Text)
	}
	if m, ok := p.value("-X", "--method"); ok && p.operand(0) == "api" && strings.EqualFold(m.Text, "DELETE") {
		x.effect(c, InfraDestroy, "destroy", "api "+p.operand(1), "a thing of the hosted repository is deleted")
		return
	}
	// Clouds put the group before the verb; the others name the verb first.
	anywhere := c.name == "gcloud" || c.name == "az" || c.name == "doctl" || c.name == "bq"
	for _, v := range infraVerbs[c.name] {
		if v.matches(p.operands, flags, anywhere) {
			x.effect(c, InfraDestroy, "destroy", joinWords(wordTexts(p.operands[:min(len(p.operands), 4)])), v.note)
			return
		}
	}
	x.execute(c)
}

// dryRunOff reports whether a dry run was switched off in words.
func dryRunOff(p *parsedArgs) bool {
	v, ok := p.value("--dry-run", "--dryrun")
	return ok && (v.Text == "none" || v.Text == "false")
}

// matches looks for the verb's words in order, at the start of the operands or anywhere among the first six.
func (v *lossVerb) matches(operands []shell.Word, flags []string, anywhere bool) bool {
	if len(v.flags) > 0 && !slices.ContainsFunc(v.flags, func(f string) bool { return slices.Contains(flags, f) }) {
		return false
	}
	if len(v.words) == 0 {
		return true
	}
	at := 0
	for i, w := range operands {
		if i > 5 {
			break
		}
		if slices.Contains(strings.Split(v.words[at], "|"), w.Text) {
			if at++; at == len(v.words) {
				return true
			}
		} else if !anywhere {
			return false
		} else {
			at = 0
		}
	}
	return false
}

// progAWS: verbs are words that start with delete-, terminate- and the like.
func progAWS(x *evaluation, c *command) {
	x.infraRuns(c)
	p := parseArgs(c.args, infraValueFlags)
	if p.has("--dry-run", "--dryrun", "--generate-cli-skeleton") || lastText(p.operands) == "help" {
		return
	}
	if len(p.operands) > 1 {
		service, verb := p.operand(0), p.operand(1)
		loss := false
		for _, prefix := range []string{"delete-", "terminate-", "remove-", "deregister-", "purge-", "reset-", "destroy-", "batch-delete", "schedule-key-deletion", "disable-"} {
			loss = loss || strings.HasPrefix(verb, prefix) || verb == prefix
		}
		if service == "s3" && (verb == "rm" || verb == "rb" || verb == "sync" && p.has("--delete") || verb == "mv") {
			loss = true
		}
		if loss {
			x.effect(c, InfraDestroy, "destroy", service+" "+verb, "cloud resources are deleted")
			return
		}
	}
	if p.operand(0) == "s3" && (p.operand(1) == "cp" || p.operand(1) == "sync") {
		for _, w := range p.operands[2:max(2, len(p.operands)-1)] {
			if !strings.HasPrefix(w.Text, "s3://") {
				x.sendFile(c, w, "s3")
			}
		}
		if len(p.operands) > 3 && p.operand(1) == "cp" {
			if dst := p.operands[len(p.operands)-1]; !strings.HasPrefix(dst.Text, "s3://") && dst.Text != "-" {
				x.writeInto(c, dst, p.operand(len(p.operands)-2))
			}
		}
	}
	x.execute(c)
}
