/** A Redis that takes connections again, and answers no subscription in time. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { ClusterNews } from '../../src/cluster/cluster-news.js'
import { eventually } from '../eventually.js'

const channel = 'news'

/** By name of the command. */
const answers: Readonly<Record<string, string>> = {
  info: '$19\r\nredis_version:7.0.0\r\n',
  subscribe: `*3\r\n$9\r\nsubscribe\r\n$${channel.length}\r\n${channel}\r\n:1\r\n`,
}

t.test('a subscription that is answered too late ends nothing', async (t) => {
  const sockets = new Set<Socket>()
  let subscriptions = 0
  let isSilent = false
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
    socket.on('data', (text) => {
      for (const command of text
        .toString()
        .split(/\*\d+\r\n/)
        .slice(1)) {
        const name = command.split('\r\n')[1]?.toLowerCase() ?? ''
        subscriptions += name === 'subscribe' ? 1 : 0
        if (name !== 'subscribe' || !isSilent) socket.write(answers[name] ?? '+OK\r\n')
      }
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const warnings: string[] = []
  const log = { warn: (line: object) => void warnings.push(JSON.stringify(line)), info: () => undefined }
  const { port } = server.address() as AddressInfo
  const news = new ClusterNews(`redis://127.0.0.1:${port}`, channel, () => undefined, systemClock, log)
  t.teardown(() => {
    news.close()
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  await eventually('it has subscribed', () => subscriptions === 1)
  isSilent = true
  for (const socket of sockets) socket.destroy()
  // What nobody hears fails the test.
  await eventually('it was too late', () => warnings.some((line) => /timed out/.test(line)))
  t.equal(subscriptions, 2, 'it subscribes once for each connection')
})
