import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import type { Corpus } from '../corpus/corpus.js'
import type { Sites } from '../corpus/sites.js'
import { start } from '../kit/child.js'
import { emptyFolder, programPath } from '../kit/folders.js'
import { type Candidate, candidate } from './candidate.js'
import type { Served } from './handler.js'

/** Lines that a layer writes itself, or that depend on the request. */
const own = /^(date|content-length|connection|keep-alive|etag|content-range|transfer-encoding)$/i

/** Header lines that a gateway sends with a content, cut where the id stands: what rivals send, too. */
export async function blockOf(port: number, id: string): Promise<string[]> {
  const exchange = get({ port, host: '127.0.0.1', path: `/${id}`, agent: false })
  const [answer] = (await once(exchange, 'response')) as [IncomingMessage]
  answer.resume()
  await once(answer, 'end')
  const lines: string[] = []
  for (let at = 0; at < answer.rawHeaders.length; at += 2) {
    const [name = '', value = ''] = answer.rawHeaders.slice(at, at + 2)
    if (!own.test(name)) lines.push(`${name}: ${value}`)
  }
  return lines.join('\r\n').split(id)
}

const kinds = {
  uws: { name: 'uWebSockets', role: 'rival' },
  node: { name: 'node:http', role: 'rival' },
  own: { name: 'own server alone', role: 'part' },
} as const

/** Starts a server layer over the contents, with the header lines of the gateway. */
export async function startLayer(
  layer: keyof typeof kinds,
  corpus: Corpus,
  sites: Sites | undefined,
  block: readonly string[],
): Promise<Candidate> {
  const all = sites?.all ?? []
  const pages = all.flatMap((site) =>
    [...site.pages].map(([path, content]) => [`${site.id}/${path}`, content.id]),
  )
  const served: Served = {
    packs: corpus.packs,
    placesPath: corpus.placesPath,
    block,
    names: Object.fromEntries(all.map(({ name, id }) => [name, id])),
    pages: Object.fromEntries(pages),
  }
  const file = join(emptyFolder(`layer-${layer}`), 'served.json')
  writeFileSync(file, JSON.stringify(served))
  const words = [programPath('rivals/layer.js'), layer, file]
  const child = await start(process.execPath, words, { shape: /^listening (\d+)\n/ })
  const { name, role } = kinds[layer]
  return candidate(name, role, Number(child.matched?.[1]), child)
}
