// The downlink of a radio network in ns-3's LTE module: full buffers, proportional fair, no fast fading, one antenna.
//
//     lte_ns3 GAINS SECONDS < nothing > rates
//
// GAINS: the number of users and of cells, then for each user the cell that serves it and how much of each cell's
// power reaches it, in dB. Prints for each user the bits a second that its RLC received after the first half second.
#include "ns3/core-module.h"
#include "ns3/lte-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"

#include <fstream>
#include <iostream>
#include <map>

using namespace ns3;

namespace
{
std::vector<std::vector<double>> g_gains; // by user and cell
std::map<const MobilityModel*, size_t> g_users;
std::map<const MobilityModel*, size_t> g_cells;

class TableLoss : public PropagationLossModel
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("ns3::TableLoss").SetParent<PropagationLossModel>().AddConstructor<TableLoss>();
        return tid;
    }

  private:
    double DoCalcRxPower(double tx, Ptr<MobilityModel> a, Ptr<MobilityModel> b) const override
    {
        auto user = g_users.find(PeekPointer(a));
        auto cell = g_cells.find(PeekPointer(b));
        if (user == g_users.end())
        {
            user = g_users.find(PeekPointer(b));
            cell = g_cells.find(PeekPointer(a));
        }
        bool pair = user != g_users.end() && cell != g_cells.end();
        return pair ? tx + g_gains[user->second][cell->second] : -1000.0;
    }

    int64_t DoAssignStreams(int64_t) override
    {
        return 0;
    }
};

NS_OBJECT_ENSURE_REGISTERED(TableLoss);
} // namespace

int main(int argc, char** argv)
{
    std::ifstream file(argv[1]);
    double seconds = std::stod(argv[2]);
    size_t users, cells;
    file >> users >> cells;
    std::vector<size_t> serving(users);
    g_gains.assign(users, std::vector<double>(cells));
    for (size_t user = 0; user < users; ++user)
    {
        file >> serving[user];
        for (auto& gain : g_gains[user])
        {
            file >> gain;
        }
    }
    Config::SetDefault("ns3::LteSpectrumPhy::CtrlErrorModelEnabled", BooleanValue(false));
    Config::SetDefault("ns3::LteEnbPhy::TxPower", DoubleValue(46.0));
    Config::SetDefault("ns3::LteUePhy::NoiseFigure", DoubleValue(9.0));
    Config::SetDefault("ns3::LteUePhy::EnableUplinkPowerControl", BooleanValue(false));
    Config::SetDefault("ns3::LteEnbRrc::SrsPeriodicity", UintegerValue(160));
    Config::SetDefault("ns3::RadioBearerStatsCalculator::StartTime", TimeValue(Seconds(0.5)));
    Config::SetDefault("ns3::RadioBearerStatsCalculator::EpochDuration", TimeValue(Seconds(2 * seconds)));
    auto helper = CreateObject<LteHelper>();
    helper->SetAttribute("PathlossModel", TypeIdValue(TableLoss::GetTypeId()));
    helper->SetSchedulerType("ns3::PfFfMacScheduler");
    helper->SetEnbDeviceAttribute("DlBandwidth", UintegerValue(50));
    helper->SetEnbDeviceAttribute("UlBandwidth", UintegerValue(50));
    NodeContainer enbs, ues;
    enbs.Create(cells);
    ues.Create(users);
    MobilityHelper mobility;
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(enbs);
    mobility.Install(ues);
    for (size_t at = 0; at < cells; ++at)
    {
        g_cells[PeekPointer(enbs.Get(at)->GetObject<MobilityModel>())] = at;
    }
    for (size_t at = 0; at < users; ++at)
    {
        g_users[PeekPointer(ues.Get(at)->GetObject<MobilityModel>())] = at;
    }
    auto enbDevices = helper->InstallEnbDevice(enbs);
    auto ueDevices = helper->InstallUeDevice(ues);
    for (size_t user = 0; user < users; ++user)
    {
        helper->Attach(ueDevices.Get(user), enbDevices.Get(serving[user]));
    }
    helper->ActivateDataRadioBearer(ueDevices, EpsBearer(EpsBearer::NGBR_VIDEO_TCP_DEFAULT));
    helper->EnableRlcTraces();
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    auto stats = helper->GetRlcStats();
    for (size_t user = 0; user < users; ++user)
    {
        auto imsi = ueDevices.Get(user)->GetObject<LteUeNetDevice>()->GetImsi();
        std::cout << stats->GetDlRxData(imsi, 3) * 8.0 / (seconds - 0.5) << "\n";
    }
    Simulator::Destroy();
}
