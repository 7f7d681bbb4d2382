import t from 'tap'
import { coverage } from '../../src/attest/covered.js'
import type { Line } from '../../src/attest/line.js'
import { vocabularies } from '../../src/attest/vocabulary.js'

const suffixes = {
  gateway: [
    'Data-Id',
    'Verified',
    'Stable',
    'Trusted',
    'Root-Transaction-Id',
    'Chunk-Source-Type',
    'Index-Publication',
    'Index-File',
  ],
  chain: ['Owner-Address', 'Tags-Truncated', 'Chunk-Data-Root', 'Chunk-Tx-Id'],
  names: [
    'Name',
    'Resolved-Id',
    'TTL-Seconds',
    'ANT-Program-Id',
    'ANT-Id',
    'Basename',
    'Record',
    'Resolved-At',
    'Undername-Limit',
    'Record-Index',
  ],
} as const

for (const words of Object.values(vocabularies)) {
  const cover = coverage(words)
  const names = (['gateway', 'chain', 'names'] as const).flatMap((room) =>
    suffixes[room].map((suffix) => `${words[room]}${suffix}`),
  )

  t.test(`${words.name}: each trust header alone makes an answer worth signing`, async (t) => {
    for (const name of names) {
      const line: Line = [name, 'x']
      t.same(cover([line]), { lines: [[name.toLowerCase(), 'x']], worthSigning: true }, name)
    }
  })

  t.test(`${words.name}: companion lines are signed but are no reason to sign`, async (t) => {
    const companions = [
      'Content-Type',
      'Content-Digest',
      'Repr-Digest',
      `${words.gateway}Root-Data-Item-Offset`,
      `${words.gateway}Root-Data-Offset`,
      `${words.gateway}Root-Item-Offset`,
      `${words.chain}Tag-Any`,
      `${words.chain}Tag-Count`,
    ]
    for (const name of companions) {
      t.same(cover([[name, 'x']]), { lines: [[name.toLowerCase(), 'x']], worthSigning: false }, name)
    }
  })

  t.test(`${words.name}: what changes on the way, or says nothing about trust, is not covered`, async (t) => {
    const others = [
      'Cache-Control',
      'ETag',
      'Content-Range',
      'Content-Length',
      'X-Cache',
      'Date',
      'X-Request-Id',
      `${words.gateway}Digest`,
      `${words.gateway}Hops`,
      `${words.chain}Owner`,
      `${words.chain}Signature`,
    ]
    for (const name of others) t.same(cover([[name, 'x']]), { lines: [], worthSigning: false }, name)
  })
}
