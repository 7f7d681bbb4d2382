import { exitCode } from './exit-code.js'

const words =
  'start verify devnet index names moderation ledger bands import settings put deploy sync get price ' +
  'balance top-up share history completion promotion drive'
const driveWords = 'create drives ls put get mkdir mv rename hide show share snapshot'
const options = '--help --json --network --upload --payment --gateway --key --token'

const scripts: Readonly<Record<string, string>> = {
  bash: `_sluice() { local w="\${COMP_WORDS[COMP_CWORD]}"
  if [ "$COMP_CWORD" = 1 ]; then COMPREPLY=($(compgen -W "${words}" -- "$w"))
  elif [ "$COMP_CWORD" = 2 ] && [ "\${COMP_WORDS[1]}" = drive ]; then COMPREPLY=($(compgen -W "${driveWords}" -- "$w"))
  elif [[ "$w" == -* ]]; then COMPREPLY=($(compgen -W "${options}" -- "$w"))
  else COMPREPLY=($(compgen -f -- "$w")); fi; }
complete -F _sluice sluice
`,
  zsh: `#compdef sluice
if (( CURRENT == 3 )) && [[ $words[2] = drive ]]; then compadd ${driveWords}; return; fi
_arguments '1:command:(${words})' '*:file:_files' ${options
    .split(' ')
    .map((one) => `'${one}'`)
    .join(' ')}
`,
  fish: `complete -c sluice -n __fish_use_subcommand -f -a "${words}"
complete -c sluice -n '__fish_seen_subcommand_from drive; and test (count (commandline -opc)) -eq 2' -f -a "${driveWords}"
${options
  .split(' ')
  .map((one) => `complete -c sluice -l ${one.slice(2)}`)
  .join('\n')}
`,
}

const help = `sluice completion: prints a script for a shell, which completes commands

Usage: sluice completion bash|zsh|fish

Example:
  source <(sluice completion bash)
`

/** Prints a completion script. */
export async function completion([shell = '']: readonly string[]): Promise<number> {
  if (shell === '--help') {
    process.stdout.write(help)
    return exitCode.done
  }
  const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined
  if (script === undefined) {
    process.stderr.write('sluice completion: give bash, zsh or fish\n')
    return exitCode.usage
  }
  process.stdout.write(script)
  return exitCode.done
}
