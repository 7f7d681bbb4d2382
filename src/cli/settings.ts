import { parseArgs } from 'node:util'
import { listSettings } from '../../config/read.js'
import { paint } from './paint.js'

const help = `sluice settings: lists every setting

Usage: sluice settings [--markdown]

Settings are environment variables. An unknown or malformed one stops the start, all errors at once.
`

/** Prints the configuration table, for a terminal or as Markdown. */
export async function settings(words: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...words],
    options: { help: { type: 'boolean' }, markdown: { type: 'boolean' } },
  })
  if (values.help === true) process.stdout.write(help)
  else process.stdout.write(values.markdown === true ? markdown() : plain())
  return 0
}

function plain(): string {
  return listSettings()
    .map(({ env, defaultText, allowed, why }) => {
      const preset = defaultText === '' ? 'unset' : defaultText
      return `${paint('bold', env)} = ${preset}\n    ${why}\n    ${paint('dim', allowed)}\n`
    })
    .join('')
}

function markdown(): string {
  const rows = listSettings().map(
    ({ env, defaultText, allowed, why }) =>
      `| ${env} | ${defaultText.replaceAll('|', '\\|')} | ${allowed.replaceAll('|', '\\|')} | ${why} |`,
  )
  return `| Setting | Default | Allowed | Meaning |\n|---|---|---|---|\n${rows.join('\n')}\n`
}
