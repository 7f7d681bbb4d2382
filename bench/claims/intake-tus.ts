/** @tus/server with its store of files on a free port, in the folder that is given. */
import { createServer } from 'node:http'
import { say } from '../kit/say.js'
import { tusPackages } from './intake-servers.js'

interface Tus {
  readonly Server: new (options: object) => { handle(request: unknown, response: unknown): Promise<void> }
}
interface Store {
  readonly FileStore: new (options: { readonly directory: string }) => object
}

const [directory = ''] = process.argv.slice(2)
const { Server } = (await import(tusPackages.server)) as Tus
const { FileStore } = (await import(tusPackages.store)) as Store
const tus = new Server({ path: '/files', datastore: new FileStore({ directory }) })
const server = createServer((request, response) => void tus.handle(request, response))
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  say(`port ${typeof address === 'object' && address !== null ? address.port : 0}`)
})
