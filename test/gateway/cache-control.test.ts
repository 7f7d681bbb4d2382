import t from 'tap'
import { bareType } from '../../src/format/media-type.js'
import { cacheControl, soonStale } from '../../src/gateway/cache-control.js'
import { gatewayDefaults } from '../../src/gateway/gateway-parts.js'

const rules = { ...gatewayDefaults.cache, privateTypes: ['video/*', 'image/svg+xml', '*/secret'] }

t.test('seconds by trust: final, trusted, other; large and listed content is private', async (t) => {
  const say = cacheControl(rules)
  const small = { stable: false, trusted: false, sizeBytes: 10, contentType: 'text/html' }
  const table: [Partial<typeof small>, string][] = [
    [{}, 'public, max-age=7200'],
    [{ trusted: true }, 'public, max-age=43200'],
    [{ stable: true }, 'public, max-age=2592000, immutable'],
    [{ stable: true, trusted: true }, 'public, max-age=2592000, immutable'],
    [{ sizeBytes: 104_857_600 }, 'public, max-age=7200'],
    [{ sizeBytes: 104_857_601, stable: true }, 'private, max-age=2592000, immutable'],
    [{ contentType: 'Video/MP4; codecs="a"' }, 'private, max-age=7200'],
    [{ contentType: 'video/a/b' }, 'public, max-age=7200'],
    [{ contentType: 'image/svg+xml' }, 'private, max-age=7200'],
    [{ contentType: 'image/svgxxml' }, 'public, max-age=7200'],
    [{ contentType: 'any/secret' }, 'private, max-age=7200'],
  ]
  for (const [more, expected] of table) t.equal(say({ ...small, ...more }), expected, JSON.stringify(more))
  t.equal(soonStale(rules), 'public, max-age=60, must-revalidate')
})

t.test('types are compared without their parameters', async (t) => {
  t.equal(bareType('Text/HTML; charset=utf-8'), 'text/html')
  t.equal(bareType('text/html;charset=utf-8'), 'text/html')
  t.equal(bareType(''), '')
})
