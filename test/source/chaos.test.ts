import { createHash, randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { pause } from '../../src/actor/clock.js'
import { isRefusal } from '../../src/format/refusal.js'
import { eventually } from '../eventually.js'
import { random } from '../property.js'
import { drain, gateways, rig, sha256, someId, upstream } from './rig.js'

t.test(
  'readers that come and go, over sources that fail, leave nothing behind and see no wrong byte',
  async (t) => {
    const items = new Map(
      Array.from({ length: 12 }, (_, index) => [someId(), randomBytes(500 + index * 40_000)]),
    )
    const ids = [...items.keys()]
    const server = await upstream((request, response) => {
      const body = items.get((request.url ?? '').slice(5) as (typeof ids)[number])
      if (body === undefined) return void response.writeHead(404).end()
      const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '')
      const [start, end] = range === null ? [0, body.length - 1] : [Number(range[1]), Number(range[2])]
      const part = body.subarray(start, end + 1)
      response.writeHead(range === null ? 200 : 206, {
        'content-length': part.length,
        ...(range && { 'content-range': `bytes ${start}-${end}/${body.length}` }),
      })
      const fate = random()
      if (fate < 0.2) response.write(part.subarray(0, part.length / 2), () => response.destroy())
      else if (fate < 0.3) setTimeout(() => response.end(part), 30)
      else response.end(part)
    })
    const house = await rig({
      source: gateways([server.url]),
      fetcher: { joinBytes: 1000, wholeForWindowMaxBytes: 100 },
    })
    const edges = [house.edge(), house.edge()]
    let whole = 0
    const client = async (): Promise<void> => {
      for (let round = 0; round < 25; round += 1) {
        const edge = edges[Math.floor(random() * 2)]!
        const id = random() < 0.05 ? someId() : ids[Math.floor(random() * ids.length)]!
        const body = items.get(id)
        const far = body !== undefined && random() < 0.3
        const start = far ? Math.floor(random() * body.length) : 0
        const opened = await edge.open(id, far ? { start, end: body.length - 1 } : undefined)
        if (isRefusal(opened)) {
          if (body === undefined) t.equal(opened.refused, 'unknown')
          else t.match(opened.refused, /^(upstream|late|busy)$/)
          continue
        }
        const content = edge.grow(opened)
        const end = opened.base + opened.sizeBytes
        if (random() < 0.3) await Promise.race([drain(content, start, end), pause(random() * 5)])
        else {
          const bytes = await drain(content, start, end)
          if (!bytes.equals(body!.subarray(start, start + bytes.length))) t.fail('wrong bytes')
          if (bytes.length === end - start) whole += 1
        }
        content.close()
      }
    }
    await Promise.all(Array.from({ length: 16 }, client))
    await eventually('no transfer is held', () => house.fetcher.held === 0)
    t.ok(whole > 0)
    t.same(await house.drafts(), [])
    const files = await readdir(join(house.path, 'blobs'), { recursive: true, withFileTypes: true })
    for (const file of files.filter((one) => one.isFile())) {
      const bytes = await readFile(join(file.parentPath, file.name))
      t.equal(createHash('sha256').update(bytes).digest('base64url'), file.name)
    }
    for (const [id, body] of items) {
      const known = house.catalog.attributes(id)
      if (known?.digest !== undefined) t.same(known.digest, sha256(body))
    }
    await house.close()
    await server.close()
  },
)
