import { parseArgs } from 'node:util'
import { reloadWords, settingGroups } from '../../config/groups.js'
import type { Setting } from '../../config/setting.js'
import { exitCode } from './exit-code.js'
import { paint } from './paint.js'

const help = `sluice settings: lists settings, by group

Usage: sluice settings [WORD...] [--json | --markdown]

  WORD        only settings with this word in their name, text or group; with several, with all of them
  --json      for programs: [{group, name, default, allowed, meaning, secret, reloadable}]
  --markdown  one table

Settings are environment variables, or lines of SETTINGS_FILE. An unknown or malformed one stops the start, all errors at once.
A running program uses new values of those that are marked with "sluice reload" after that command; others wait for a start.

Examples:
  sluice settings cache
  sluice settings rate limit --json
  sluice settings sluice reload       those that need no new start
`

/** Prints the configuration table, or what is found in it: for a terminal, as Markdown or as JSON. */
export async function settings(words: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...words],
    options: { help: { type: 'boolean' }, markdown: { type: 'boolean' }, json: { type: 'boolean' } },
    allowPositionals: true,
  })
  if (values.help === true) {
    process.stdout.write(help)
    return exitCode.done
  }
  const groups = settingGroups(positionals)
  const found = groups.flatMap(({ title, settings: some }) => some.map((one) => ({ title, one })))
  if (values.json === true) process.stdout.write(`${JSON.stringify(found.map(described), null, 2)}\n`)
  else if (values.markdown === true) process.stdout.write(markdown(found.map(({ one }) => one)))
  else for (const group of groups) process.stdout.write(plain(group.title, group.settings))
  if (found.length > 0) return exitCode.done
  process.stderr.write(`No setting has ${positionals.map((word) => `"${word}"`).join(' and ')} in it.\n`)
  return exitCode.notFound
}

type Row = Setting<unknown>

/** Unset settings have no default. */
function described({ title, one }: { readonly title: string; readonly one: Row }) {
  const { env, defaultText, allowed, why, secret, reloadable } = one
  const preset = defaultText === '' ? {} : { default: defaultText }
  return { group: title, name: env, ...preset, allowed, meaning: why, secret, reloadable }
}

function plain(title: string, rows: readonly Row[]): string {
  const texts = rows.map(({ env, defaultText, allowed, why, reloadable }) => {
    const preset = defaultText === '' ? 'unset' : defaultText
    const small = paint('dim', reloadable ? `${allowed}; ${reloadWords}` : allowed)
    return `${paint('bold', env)} = ${preset}\n    ${why}\n    ${small}\n`
  })
  return `${paint('cyan', title)}\n\n${texts.join('')}\n`
}

function markdown(settings: readonly Row[]): string {
  const rows = settings.map(
    ({ env, defaultText, allowed, why, reloadable }) =>
      `| ${env} | ${[defaultText, allowed, why].map(cell).join(' | ')} | ${reloadable ? 'reload' : 'start'} |`,
  )
  const head = '| Setting | Default | Allowed | Meaning | Used after |\n|---|---|---|---|---|'
  return `${head}\n${rows.join('\n')}\n`
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|')
}
