// grpc.reflection.v1alpha: what the services are, for tools that were built without our .proto
// files. gRPC's own asks for no token and takes a thread for each stream.
#ifndef GRIDCLOCK_SERVER_RPC_REFLECTION_H_
#define GRIDCLOCK_SERVER_RPC_REFLECTION_H_

#include <string>
#include <vector>

#include <google/protobuf/descriptor.h>

#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "server/core/read_gate.h"
#include "server/rpc/backend.h"
#include "server/rpc/service.h"

namespace gridclock {

// The files of our services and all that they import. In a pool of its own: the generated one has
// the words between server and workers too, and remembers each name that it does not know.
class ServiceFiles {
 public:
  ServiceFiles();
  grpc::reflection::v1alpha::ServerReflectionResponse Answer(
      const grpc::reflection::v1alpha::ServerReflectionRequest& request) const;

 private:
  void Add(const google::protobuf::FileDescriptor& file);

  google::protobuf::DescriptorPool pool_;
  std::vector<std::string> services_;
};

// For those who may read.
class ReflectionService final : public Service {
 public:
  explicit ReflectionService(Backend& backend);

 private:
  const ServiceFiles files_;
  ReadGate requests_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_REFLECTION_H_
