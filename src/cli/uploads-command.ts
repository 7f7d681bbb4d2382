import { parseArgs } from 'node:util'
import { readConfig } from '../../config/read.js'
import { servicePorts } from '../../config/services.js'
import { abortAfter } from '../actor/clock.js'
import { adminKey } from '../main/admin-key-file.js'
import { exitCode } from './exit-code.js'
import { whyUnreachable } from './unreachable.js'

const help = `sluice uploads: what was uploaded, on its way into the chain

Usage: sluice uploads status [ID] [--upload URL]
       sluice uploads repack ID [--upload URL]
       sluice uploads reseed ID|all [--upload URL]
       sluice uploads trust ID|all [--upload URL]

  status    the whole service, or an item, or a bundle: its state, and what it waits for; JSON
  repack    gives a bundle up, so that its items are packed into another; or has an item that was given up packed again
  reseed    sends the chunks of a bundle once more; all: of all bundles whose data no node shows
  trust     takes a bundle deep in the chain for permanent though no node shows its data, or all such bundles: look at it
            elsewhere before, because its bytes are removed here an hour later
  --upload  the upload service, which must run with the same settings; http://127.0.0.1:UPLOAD_PORT (3001)

ID names an item or a bundle. Ends with code 0, with 2 on wrong arguments, 3 where there is no such item, 5 where the service
does not answer, 1 where it refuses.
`

/** Asks the upload service that runs with the same settings. */
export async function uploadsCommand(words: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...words],
    options: { help: { type: 'boolean' }, upload: { type: 'string' } },
    allowPositionals: true,
  })
  if (values.help === true) {
    process.stdout.write(help)
    return exitCode.done
  }
  const [what = '', id, ...more] = positionals
  const order = orderOf(what, id)
  if (order === undefined || more.length > 0) {
    process.stderr.write(
      'sluice uploads: give status, repack ID, reseed ID or trust ID; see sluice uploads --help\n',
    )
    return exitCode.usage
  }
  const config = readConfig()
  if (Array.isArray(config)) {
    for (const line of config) process.stderr.write(`sluice uploads: ${line}\n`)
    return exitCode.usage
  }
  const url = values.upload ?? `http://127.0.0.1:${servicePorts(config.services, config.server.port).upload}`
  const headers = { authorization: `Bearer ${adminKey(config)}` }
  const { method, path } = order
  const answer = await fetch(`${url}/admin/${path}`, { method, headers, signal: abortAfter(30_000) }).catch(
    whyUnreachable,
  )
  if (typeof answer === 'string') {
    process.stderr.write(
      `sluice uploads: ${url} does not answer: ${answer}. Start the service, or name its address by --upload\n`,
    )
    return exitCode.unreachable
  }
  const text = await answer.text()
  if (!answer.ok) {
    process.stderr.write(`sluice uploads: ${answer.status}: ${text}\n`)
    return answer.status === 404 ? exitCode.notFound : exitCode.failed
  }
  const outcome = JSON.parse(text) as { readonly message?: string }
  process.stdout.write(`${outcome.message ?? JSON.stringify(outcome, undefined, 2)}\n`)
  return exitCode.done
}

function orderOf(what: string, id: string | undefined) {
  if (what === 'status')
    return { method: 'GET', path: id === undefined ? 'uploads' : `uploads/${encodeURIComponent(id)}` }
  if (!['repack', 'reseed', 'trust'].includes(what) || id === undefined) return undefined
  return { method: 'POST', path: `uploads-${what}/${encodeURIComponent(id)}` }
}
