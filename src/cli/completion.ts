import { exitCode } from './exit-code.js'

const words =
  'start verify devnet index names moderation ledger reload rotate tls bands import adopt settings put deploy sync get price ' +
  'balance top-up share history completion promotion uploads drive key store cluster'
const driveWords = 'create drives ls put get mkdir mv rename hide show share snapshot'
const common = '--help --json --network --upload --payment --gateway --key --token'

/** Options of the client's commands beside those that all have. */
export const ownOptions: Readonly<Record<string, string>> = {
  key: '--kind --file',
  put: '--type --tag --paid-by --usdc',
  deploy: '--index --fallback --tag --bundle --usdc --include-hidden --name --ttl',
  sync: '--index --fallback --tag --bundle --usdc --include-hidden --watch',
  get: '--range --output',
  price: '--currency',
  'top-up': '--for --tx',
  share: '--seconds --revoke --list',
  history: '--limit --cursor',
  drive: '--private --all --password-file --output --type',
}

const own = Object.entries(ownOptions)

// Where nothing is given the shell completes names of files (`-o default`), spaces in them and all.
const bash = `_sluice() { local w="\${COMP_WORDS[COMP_CWORD]}" own=
  COMPREPLY=()
  case "\${COMP_WORDS[1]}" in
${own.map(([name, options]) => `    ${name}) own="${options}" ;;`).join('\n')}
  esac
  if [ "$COMP_CWORD" = 1 ]; then COMPREPLY=($(compgen -W "${words}" -- "$w"))
  elif [ "$COMP_CWORD" = 2 ] && [ "\${COMP_WORDS[1]}" = drive ]; then COMPREPLY=($(compgen -W "${driveWords}" -- "$w"))
  elif [[ "$w" == -* ]]; then COMPREPLY=($(compgen -W "$own ${common}" -- "$w")); fi; }
complete -F _sluice -o default sluice
`

const zsh = `#compdef sluice
if (( CURRENT == 2 )); then compadd ${words}; return; fi
if (( CURRENT == 3 )) && [[ $words[2] = drive ]]; then compadd ${driveWords}; return; fi
if [[ $words[CURRENT] != -* ]]; then _files; return; fi
case $words[2] in
${own.map(([name, options]) => `  ${name}) compadd -- ${options} ;;`).join('\n')}
esac
compadd -- ${common}
`

const fish = [
  `complete -c sluice -n __fish_use_subcommand -f -a "${words}"`,
  `complete -c sluice -n '__fish_seen_subcommand_from drive; and test (count (commandline -opc)) -eq 2' -f -a "${driveWords}"`,
  ...common.split(' ').map((one) => `complete -c sluice -l ${one.slice(2)}`),
  ...own.flatMap(([name, options]) =>
    options
      .split(' ')
      .map((one) => `complete -c sluice -n '__fish_seen_subcommand_from ${name}' -l ${one.slice(2)}`),
  ),
  '',
].join('\n')

const scripts: Readonly<Record<string, string>> = { bash, zsh, fish }

const help = `sluice completion: prints a script for a shell, which completes commands, options and names of files

Usage: sluice completion bash|zsh|fish

Examples:
  source <(sluice completion bash)
  sluice completion zsh > ~/.zfunc/_sluice
  sluice completion fish > ~/.config/fish/completions/sluice.fish
`

/** Prints a completion script. */
export async function completion([shell = '']: readonly string[]): Promise<number> {
  if (shell === '--help') {
    process.stdout.write(help)
    return exitCode.done
  }
  const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined
  if (script === undefined) {
    process.stderr.write('sluice completion: give bash, zsh or fish; see sluice completion --help\n')
    return exitCode.usage
  }
  process.stdout.write(script)
  return exitCode.done
}
