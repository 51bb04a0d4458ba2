// Sends calls to a cluster, one node of which listens at the port in argv[4]. argv[2] is the library, and argv[3] how
// it sends a call. Each line of the input is a key and a call. The call is sent argv[5] times, each time with another
// number for #. Then a line is printed.

import { createInterface } from 'node:readline'
import { Cluster, Command } from 'ioredis'
import { createCluster } from 'redis'

const [library, way, port, calls] = process.argv.slice(2)

const libraries = {
  async ioredis() {
    const cluster = new Cluster([{ host: '127.0.0.1', port: Number(port) }])
    return {
      call: (key, name, ...args) => cluster.call(name, ...args),
      getKeys: (key, name, ...args) => {
        const command = new Command(name, args, { replyEncoding: 'utf8' })
        command.getKeys = () => [key]
        return cluster.sendCommand(command)
      },
      quit: () => cluster.quit(),
    }
  },
  async redis() {
    const cluster = createCluster({ rootNodes: [{ url: `redis://127.0.0.1:${port}` }] })
    await cluster.connect()
    return {
      sendCommand: (key, ...words) => cluster.sendCommand(key, false, words),
      quit: () => cluster.close(),
    }
  },
}

const { quit, [way]: send } = await libraries[library]()
for await (const line of createInterface({ input: process.stdin })) {
  for (let number = 0; number < Number(calls); number += 1) {
    await send(...line.replaceAll('#', number).split(' '))
  }
  console.log('sent')
}
await quit()
